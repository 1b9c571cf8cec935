package sandbox

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// auditArch is how the kernel names an architecture; 0 where a filter has not
// been thought about.
func auditArch(arch string) uint32 {
	switch arch {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// foreignABI begins the numbers of system calls of x32, which reach the same code.
const foreignABI = 0x40000000

// keyFilter is a program for seccomp(2) without the calls that reach keys
// (keyrings(7)): these belong to a session and a user, not to a namespace, so that
// a command would have those of the user who started it. Other architectures' calls are
// none at all.
func keyFilter() []byte {
	type step struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	const load, equal, atLeast, above, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const offsetNumber, offsetArch = 0, 4 // of struct seccomp_data
	program := []step{
		{load, 0, 0, offsetArch},
		{equal, 1, 0, auditArch(runtime.GOARCH)},
		{end, 0, 0, unix.SECCOMP_RET_KILL_PROCESS},
		{load, 0, 0, offsetNumber},
		{atLeast, 2, 0, foreignABI},
		{atLeast, 0, 2, unix.SYS_ADD_KEY}, // then request_key, then keyctl
		{above, 1, 0, unix.SYS_KEYCTL},
		{end, 0, 0, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{end, 0, 0, unix.SECCOMP_RET_ALLOW},
	}
	var b []byte
	for _, s := range program {
		b = binary.NativeEndian.AppendUint16(b, s.code)
		b = append(b, s.jt, s.jf)
		b = binary.NativeEndian.AppendUint32(b, s.k)
	}
	return b
}
