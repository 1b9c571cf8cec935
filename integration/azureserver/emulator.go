package azureserver

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/wsmount/wsmount/integration/internal/tied"
	"github.com/wsmount/wsmount/integration/tier"
)

var listens = regexp.MustCompile(`successfully listens on (http://\S+)`)

// StartEmulator runs Azurite, Microsoft's own reading of the service, until the test ends,
// with an empty container in it, and tells its endpoint, the account in it. It is bin/azurite,
// which takes a minute to fetch and so is of `make soak` only. A test is skipped where it is
// not there, and fails where WSMOUNT_REQUIRE asks for all.
func StartEmulator(t testing.TB) (endpoint string) {
	t.Helper()
	program := filepath.Join(tier.RequireBuilt(t, "azurite"), "node_modules", "azurite", "dist", "src", "blob", "main.js")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "node", program, "--blobHost", "127.0.0.1", "--blobPort", "0",
		"--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent")
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "AZURITE_ACCOUNTS=" + Account + ":" + AccountKey}
	said, its, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = its, its
	ended, _, err := tied.Start(cmd, syscall.SIGKILL)
	its.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		said.Close()
	})
	var output bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(said, &output)); lines.Scan(); {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, said) }() // so that it never waits for a reader
			endpoint := found[1] + "/" + Account
			c, err := client(endpoint)
			if err == nil {
				_, err = c.Create(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			return endpoint
		}
	}
	t.Fatalf("azurite ended: %s", output.String())
	return ""
}

func client(endpoint string) (*container.Client, error) {
	key, err := container.NewSharedKeyCredential(Account, AccountKey)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(endpoint+"/"+Container, key, nil)
}

// SignedURL is that of the container of a service at an endpoint, for an hour in which
// whoever has it may do everything.
func SignedURL(endpoint string) (string, error) {
	c, err := client(endpoint)
	if err != nil {
		return "", err
	}
	return c.GetSASURL(sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}, time.Now().Add(time.Hour), nil)
}
