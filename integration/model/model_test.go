package model_test

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/model"
)

// A plain directory behaves as another. MODEL_DIR and MODEL_BEHIND try a
// mount that exists.
func TestPlainDirectory(t *testing.T) {
	s := model.Subject{Dir: os.Getenv("MODEL_DIR"), Behind: os.Getenv("MODEL_BEHIND")}
	if s.Dir == "" {
		dir := t.TempDir()
		s = model.Subject{Dir: dir, Behind: dir}
	}
	model.Run(t, s, model.Options{Ops: 5000})
}
