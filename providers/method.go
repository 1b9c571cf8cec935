package providers

// Method names a call of a Provider or of one of its abilities, in errors,
// metrics and for wrappers.
type Method string

// The methods. Capabilities does no work and is not one.
const (
	MethodStat       Method = "stat"
	MethodList       Method = "list"
	MethodRead       Method = "read"
	MethodWrite      Method = "write"
	MethodDelete     Method = "delete"
	MethodMkdir      Method = "mkdir"
	MethodClose      Method = "close"
	MethodOpen       Method = "open" // a Driver's; no wrapper sees it
	MethodCopy       Method = "copy"
	MethodMove       Method = "move"
	MethodSetAttr    Method = "setattr"
	MethodStartParts Method = "start-parts"
	MethodAbortParts Method = "abort-parts"
	MethodPart       Method = "part"
	MethodCopyPart   Method = "copy-part"
	MethodComplete   Method = "complete"
	MethodAbort      Method = "abort"
	MethodWatch      Method = "watch"
	MethodHead       Method = "head"
	MethodCommit     Method = "commit"
	MethodAt         Method = "at"
	MethodFind       Method = "find"
	MethodPush       Method = "push"
	MethodFetch      Method = "fetch"
	MethodAdopt      Method = "adopt"
	MethodBase       Method = "base"
	MethodRebase     Method = "rebase"
	MethodDiffer     Method = "differences"
	MethodBranches   Method = "branches"
	MethodBegin      Method = "begin"
	MethodStart      Method = "start"
	MethodPropose    Method = "propose"
)

// readers are the methods that change nothing at the backend. Fetch and Adopt only update the
// local state, which read-only storage allows (AIP-35 adapter guide: pulls are still allowed).
// A method that is not listed counts as changing: forgetting to list one refuses too much,
// never too little.
var readers = map[Method]bool{
	MethodStat: true, MethodList: true, MethodRead: true, MethodClose: true, MethodOpen: true,
	MethodWatch: true, MethodHead: true, MethodAt: true, MethodFind: true, MethodFetch: true, MethodAdopt: true, MethodBase: true, MethodRebase: true, MethodDiffer: true,
	MethodBranches: true, MethodBegin: true,
}

// Mutates reports whether m changes the backend.
func (m Method) Mutates() bool { return !readers[m] }
