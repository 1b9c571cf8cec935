package mountspec_test

import (
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

const manifest = `---
schema: workspace/v1
id: "@acme/site"
version: 1.0.0
name: Site
owner: { type: org, id: org-1, slug: acme }
storage:
  inline:
    provider: github
    config: { owner: acme, repo: site }
    sync:
      pull: { on: turn-start }
      push: { branch_policy: per-conversation }
---
`

func ExampleParseWorkspace() {
	src, err := mountspec.ReadSource("WORKSPACE.md", strings.NewReader(manifest))
	if err != nil {
		fmt.Println(err)
		return
	}
	ws, findings := mountspec.ParseWorkspace(src, mountspec.Options{})
	if err := findings.Err(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ws.ID, "is stored by", ws.Storage.Inline.Provider)
	for _, s := range ws.Storage.Inline.Effective() {
		if s.Explicit {
			fmt.Println(s.Key, "=", s.Value)
		}
	}
	// Output:
	// @acme/site is stored by github
	// sync.pull.on = turn-start
	// sync.push.branch_policy = per-conversation
}

func ExampleFindings_Error() {
	text := strings.Replace(manifest, "branch_policy: per-conversation", "branch_polcy: main", 1)
	_, findings := mountspec.ParseWorkspace(mountspec.Source{Name: "WORKSPACE.md", Data: []byte(text)}, mountspec.Options{})
	fmt.Println(findings.Err())
	// Output:
	// WORKSPACE.md:13:15: error: storage_config_invalid: storage.inline.sync.push.branch_polcy: unknown key "branch_polcy" [unknown-key]; did you mean branch_policy?
}
