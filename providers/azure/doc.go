// Package azure is a provider whose bytes lie in a container of Azure Blob Storage.
//
// It knows the protocol, through Microsoft's SDK; package bucket maps a tree to flat keys.
//
//	driver, err := registry.Select("self-bucket", providers.Capabilities{})
//	p, err := driver.Open(ctx, providers.Settings{
//		Config: map[string]string{"kind": "azure", "bucket": "files", "endpoint": "https://acme.blob.core.windows.net"},
//		Credentials: reveal, // knows connection_string, or account_name and account_key, or sas_token
//	})
//
// Requests go to the configured endpoint alone: of a connection string the account, the key and
// the signature count, and not the endpoints, which the host did not grant. "credentials: sdk"
// is for the host alone: a service principal of the environment, a workload's identity or the
// machine's own, in this order, to an https endpoint; the logins of people's tools are other
// programs, and not run. So useDefaultCredential in a manifest is refused. A region has no
// meaning.
//
// # Versions
//
// Each change of a blob, also one of its metadata, makes a new ETag, and the service checks the
// conditions of every operation, so nothing is tried at Open. Earlier versions and snapshots
// are not read. A blob with snapshots is not deleted: they would go with it.
//
// Append blobs and page blobs are read, and can get other metadata and be deleted. Their
// versions begin with their type, so that a change of their content is refused.
//
// # Parts
//
// An upload in parts has no id at the service: blocks wait beside their blob, and Put Block
// List makes content of some and drops the others. So ids of blocks begin with random bytes,
// and of two uploads to one blob the one that ends later is a conflict. All ids of a blob's
// waiting blocks need the same length; with 48 bytes they are like those of Microsoft's tools.
// No request drops blocks without making a blob; the service drops them after a week. Until
// then an aborted upload is only forgotten locally.
//
// # Copies
//
// A copy is Put Blob From URL, which is complete when it is answered, or blocks from a URL. The
// service reads the source by its URL, as any client could: with an account's key the URL has a
// signature for an hour, which allows to read this blob. Azurite has no Put Blob From URL, so
// with it a copy is one block.
//
// # Metadata
//
// Names must be identifiers of C#: other characters are written as "_" and two hexadecimal
// digits, see names.go. The service has no header Expires, so it is metadata. Attributes change
// without a copy. Headers do too, in a request before: Set Blob Properties takes no metadata,
// and Set Blob Metadata no headers. Put Blob From URL takes both, but would make the blob anew:
// without its tags and its list of blocks, and only by reading its content again. The metadata
// come last, since they have the operation id, the mark of a complete change: if their request
// is lost, the headers are new and the attributes are not.
//
// An explicitly set access tier is a header too (storage-class), but for Archive, to which
// nothing is written. So are index tags (tagging), which listings tell, and which need rights
// of their own (blobs/tags/read and write, t of a signature): without those a blob that is
// written anew or renamed has none, which is logged. A change of attributes keeps tags.
//
// Times are dates, for rclone, and links have blobfuse2's is_symlink. Of a hierarchical
// namespace's attributes the mode is read, until another is set, in the metadata alone; its
// owners are no numbers, and its access lists are not read.
//
// The service takes a backslash in a name for a slash, and has no names that end in a dot, so
// neither kind is made: it would name another blob.
//
// Listings have metadata, and continue by tokens alone. In accounts with a hierarchical
// namespace, and where blobfuse2 or Hadoop wrote, a directory is a blob without content and
// with the metadata hdi_isfolder; it is treated as a marker, and where such blobs exist, the
// listing of a directory is followed by a HEAD for itself, and a change of it comes after two.
// Markers made by this package have the same metadata.
package azure
