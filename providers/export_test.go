package providers

// ErrorKinds is the table of the kinds.
var ErrorKinds = kinds
