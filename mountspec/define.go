package mountspec

// DefineWorkspace validates a workspace given as a struct, as AIP-34's
// defineWorkspace does: the same rules as for a manifest, by printing and
// reading it. Positions of findings are those of the printed form. The
// result has its defaults applied and shares nothing with def.
func DefineWorkspace(def Workspace, o Options) (*Workspace, Findings) {
	text, err := def.Marshal()
	if err != nil {
		return nil, unprintable(err)
	}
	return ParseWorkspace(Source{definition, text}, o)
}

// DefineStorage validates a storage given as a struct (AIP-35 defineStorage);
// see DefineWorkspace and, for zero values in sync, Sync.
func DefineStorage(def Storage, o Options) (*Storage, Findings) {
	text, err := def.Marshal()
	if err != nil {
		return nil, unprintable(err)
	}
	return ParseStorage(Source{definition, text}, o)
}

// definition stands for a file in findings about a struct.
const definition = "(definition)"

func unprintable(err error) Findings {
	return Findings{{File: definition, Line: 1, Column: 1, Rule: "unprintable", Message: err.Error()}}
}
