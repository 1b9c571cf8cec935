package mountspec

import "gopkg.in/yaml.v3"

// maxCount bounds the numbers of a sandbox block.
const maxCount = 1 << 53

// decodeSandbox reads a sandbox block, standalone or inline (AIP-36). Its
// config belongs to the compute provider and stays open.
func decodeSandbox(v value) *Sandbox {
	v, known := v.named("sandbox")
	o, ok := v.object()
	if !ok || known {
		return nil
	}
	v.refuseCredentials()
	s := &Sandbox{Pos: v.pos()}
	decodeSchema(o, sandboxSchema, false)
	s.ID = optionalID(o)
	s.Version = decodeVersion(o.get("version"))
	s.Provider, _ = o.needText("provider")
	if o.need("config").given() {
		s.Config = o.open("config")
	}
	decodeSandboxLimits(s, o.get("limits"))
	decodeSandboxEnv(s, o.get("env"))
	if network, ok := o.get("network").object(); ok {
		s.Egress = network.texts("egress")
		network.closed()
	}
	for _, item := range o.get("mounts").items() {
		if m, ok := decodeSandboxMount(item); ok {
			s.Mounts = append(s.Mounts, m)
		}
	}
	s.Identity = decodeIdentities(o.get("identity"))
	s.Policy = decodePolicies(o.get("policy"))
	decodeSandboxLifecycle(s, o.get("lifecycle"))
	s.ReadOnly = o.boolean("read_only")
	s.Metadata = decodeMetadata(o)
	o.closed()
	return s
}

func decodeSandboxLimits(s *Sandbox, v value) {
	o, ok := v.object()
	if !ok {
		return
	}
	s.TimeoutMS, _ = o.get("timeout_ms").integer(1, maxCount)
	s.MemoryMB, _ = o.get("memory_mb").integer(1, maxCount)
	s.CPUMS, _ = o.get("cpu_ms").integer(1, maxCount)
	o.closed()
}

func decodeSandboxEnv(s *Sandbox, v value) {
	o, ok := v.object()
	if !ok {
		return
	}
	s.EnvAuth = decodeAuth(o.get("auth"), "")
	s.EnvPassthrough = decodeEnvNames(o.get("passthrough"))
	o.closed()
}

// decodeSandboxLifecycle reads two AIP-37 events. AIP-36's prose has other
// keys (pause_after_idle_ms); its schema, which counts, has these.
func decodeSandboxLifecycle(s *Sandbox, v value) {
	o, ok := v.object()
	if !ok {
		return
	}
	if at := o.get("pause_after_idle"); at.given() {
		s.PauseAfterIdle = Trigger(decodeTrigger(at))
	}
	if at := o.get("destroy_on"); at.given() {
		s.DestroyOn = Trigger(decodeTrigger(at))
	}
	o.closed()
}

// sourceWorkspace is the source that means the parent workspace's own storage.
const sourceWorkspace = "workspace"

func decodeSandboxMount(v value) (SandboxMount, bool) {
	o, ok := v.object()
	if !ok {
		return SandboxMount{}, false
	}
	m := SandboxMount{Mode: MountReadWrite, Pos: v.pos()}
	var sourceOK bool
	for _, source := range o.need("source").forms(yaml.ScalarNode, yaml.MappingNode) {
		if source.present() && !source.isMapping() {
			m.Workspace = source.word(sourceWorkspace) != ""
			sourceOK = m.Workspace
		} else if source.given() {
			source.code = CodeConfigInvalid
			m.Source, sourceOK = decodeBlock(source, CodeRefUnresolvable, decodeStorage)
		}
	}
	m.At, ok = decodeMountPoint(o.need("at"))
	if s := o.oneOf("mode", string(MountReadWrite), string(MountReadOnly)); s != "" {
		m.Mode = MountMode(s)
	}
	o.closed()
	return m, ok && sourceOK
}
