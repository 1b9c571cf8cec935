package shell

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"

	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// ErrNoService says that the server ended a service without an answer: it lacks it, or refuses it
// for this repository.
var ErrNoService = errors.New("the server has no such service")

// answerMax is more than the answer of any service that answers with a text.
const answerMax = 64 << 10

// Authenticate asks for the address of the repository's large files, and the header for requests
// to it (git-lfs-authenticate): the answer is a link as the Batch API has them. ErrNoService,
// with the server's message, when it ends with a status.
func (s *Server) Authenticate(ctx context.Context, operation string) ([]byte, error) {
	one, err := s.start(ctx, "git-lfs-authenticate", " "+operation)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	_ = one.In.Close() // the server may have answered, and gone, without waiting for it
	text, err := io.ReadAll(io.LimitReader(one, answerMax))
	if err != nil {
		return nil, one.Ended(err)
	}
	if err = one.Line.Await(one.run.Wait); err == nil {
		return text, nil
	}
	var exit *ssh.ExitError
	if !errors.As(err, &exit) {
		return nil, one.Ended(err)
	}
	return nil, dialogue.Refused(string(one.said), fmt.Sprintf("exit %d", exit.ExitStatus()), ErrNoService)
}
