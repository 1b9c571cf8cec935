// Package azure is a provider whose bytes lie in a container of Azure Blob Storage.
//
// It knows the protocol, through Microsoft's SDK; how a tree lies in flat keys is package
// bucket's.
//
//	driver, err := registry.Select("self-bucket", providers.Capabilities{})
//	p, err := driver.Open(ctx, providers.Settings{
//		Config: map[string]string{"kind": "azure", "bucket": "files", "endpoint": "https://acme.blob.core.windows.net"},
//		Credentials: reveal, // knows connection_string, or account_name and account_key, or sas_token
//	})
//
// Requests go to the configured endpoint alone: of a connection string the account, the
// key and the signature count, and not the endpoints, which the host did not grant.
// "credentials: sdk" is for the host alone: a service principal of the environment, a
// workload's identity or the machine's own, in this order, to an https endpoint; the logins
// of people's tools are other programs, and not run. So useDefaultCredential, which is a
// manifest's word, is refused. A region says nothing here.
//
// # Versions
//
// Each change of a blob, also one of its metadata, has an ETag of its own, and the service
// decides on conditions of every operation, so nothing is tried at Open. Earlier versions
// and snapshots are not read. A blob with snapshots is not deleted: they would go with it.
//
// Appended blobs and page blobs are read, and can be described anew and deleted. Their
// versions begin with their type, so that a change of their content is refused.
//
// # Parts
//
// An upload in parts has no name at the service: blocks wait beside their blob, and Put
// Block List makes content of some and drops the others. So ids of blocks begin with
// random bytes, and of two uploads to one blob the one that ends later is a
// conflict. All ids of a blob's waiting blocks need the same length; of 48 bytes they are
// like those of Microsoft's tools. Nobody can drop blocks without making a blob, and the
// service does so after a week. Until then an upload that was aborted is only forgotten.
//
// # Copies
//
// A copy is Put Blob From URL, which is done when it is answered, or blocks from a URL. The
// service reads the source as anybody would who has its URL: with an account's key that has
// a signature for an hour, which allows to read this blob. Azurite has no Put Blob From URL,
// so there a copy is one block.
//
// # Metadata
//
// Names are to be identifiers of C#: what no identifier has is written as "_" and two
// hexadecimal digits, see names.go. There is no Expires, so that is metadata. Attributes
// change without a copy. Headers do too, in a request before: Set Blob Properties takes no
// metadata, and Set Blob Metadata no headers. Put Blob From URL takes both, but would make the
// blob anew: without its tags and its list of blocks, and only if its content is read again.
// The metadata come last, since they have the operation id, which says that all is done: if
// their request is lost, the headers are new and the attributes are not.
//
// An access tier that somebody chose is a header too (storage-class), but for Archive, to
// which nothing is written. So are index tags (tagging), which listings tell, and which
// need rights of their own (blobs/tags/read and write, t of a signature): without those a
// blob that is written anew or renamed has none, and the log says so. A change of attributes
// leaves tags.
//
// Times are dates, for rclone, and links have blobfuse2's is_symlink. Of what a hierarchical
// namespace keeps the mode is read, until another is set in the metadata, which is all that
// changes then; its owners are no numbers, and its access lists are not read.
//
// A backslash in a name is a slash to the service, and it has no names that end in a dot, so
// none of either is made: it would be another blob.
//
// Listings have metadata, and go on by tokens alone. In accounts with a
// hierarchical namespace, and where blobfuse2 or Hadoop wrote, a directory is a blob without
// content whose metadata say hdi_isfolder; here it is a marker, and where there are such, the
// listing of a directory is followed by a HEAD for itself, and a change of it comes after two.
// Markers that are made here say it as well.
package azure
