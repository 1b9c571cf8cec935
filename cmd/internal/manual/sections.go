package manual

// A section is a part of the page that no command's help has.
type section struct {
	title, text string
	items       [][2]string // tag, text
}

var sections = []section{
	{"MOUNT AND FSTAB", "" +
		"`mount -t wsmount`, `mount -t fuse.wsmount`, `umount` and lines of /etc/fstab call this program as " +
		"mount.wsmount, mount.fuse.wsmount, umount.wsmount and umount.fuse.wsmount. The source is a WORKSPACE as for `wsmount mount`. " +
		"Options are the flags of `wsmount mount` without dashes, those of FUSE also with an underscore, and `ro`, `rw`, " +
		"`suid`, `dev`, `exec`, `noatime` and their opposites. Options for mount(8) and systemd alone, such as " +
		"`noauto`, `user`, `_netdev`, `nofail` and `x-...`, mean nothing here. Others are refused, but with `mount -s`.\n" +
		"\n" +
		"  @acme/ops /mnt/ops wsmount ro,allow_other,_netdev,nofail 0 0\n" +
		"  @me/notes /home/me/notes wsmount user,noauto 0 0\n" +
		"\n" +
		"The second line lets the user me run `mount /home/me/notes`, with the configuration and the state of that user: the helper " +
		"runs as the user, who must own the directory. `umount` returns when everything is safe, as `wsmount umount` does; `umount -f` is its " +
		"--force and `umount -l` its --lazy, and -r is not obeyed. A state directory other than the usual one is found by `umount` when $WSMOUNT_STATE_DIR " +
		"names it, or a line of fstab for this mount point. A mount that root made with `wsmount mount`, or that another user made, " +
		"root's `umount` takes away at once; its daemon goes on until everything is safe.\n" +
		"\n" +
		"A remount is refused. With `-N` the configuration and the state are those of that mount namespace.\n" +
		"\n" +
		"Exit codes are those of mount(8): 1 for a wrong call, 2 when the system has no memory, processes or descriptors, 4 when the daemon died, " +
		"8 for an interrupt, and 32 for everything else that EXIT STATUS names.\n" +
		"\n" +
		"`x-systemd.automount` in fstab, and a map of autofs, mount when a program looks and unmount when none does:\n" +
		"\n" +
		"  ops -fstype=wsmount,allow_other :@acme/ops\n" +
		"\n" +
		"The daemon then stays in the process group of the automounter, for which the kernel mounts nothing: a workspace whose own files " +
		"the same automounter has to mount is not found. After autofs has unmounted, the daemon goes on until everything is safe, and a look " +
		"that finds it still sending two seconds later fails.", nil},
	{"SANDBOXES AND RESTARTS", "" +
		"A mount ends with its process: it cannot be handed on, not by systemd's descriptor store either, since the kernel asks for nodes that only that process knows. " +
		"Programs in it get ENOTCONN then, and open their files anew once `wsmount mount WORKSPACE MOUNTPOINT`, the recovery, has mounted it again; unsaved changes are in the working copy.\n" +
		"\n" +
		"A sandbox that binds the mount itself keeps the old one and must be started anew. One that binds the directory above, by a recursive bind whose " +
		"propagation is `rslave`, sees the new mount, and every other one made there later, by itself. That directory must lie in a shared mount, " +
		"as all do under systemd; elsewhere root does once, before anything is mounted there:\n" +
		"\n" +
		"  mount --bind DIR DIR && mount --make-shared DIR\n" +
		"\n" +
		"Users other than the one who mounted need --allow-other. Examples for bubblewrap, podman and compose are in the directory examples of the documentation (/usr/share/doc/wsmount), " +
		"and in integration/example of the sources; wsmount@.service is a unit for systemd: `systemctl enable --now wsmount@NAME` mounts what /etc/wsmount/NAME.env says.", nil},
	{"MONITORING", "" +
		"`wsmount mount --metrics-addr 127.0.0.1:PORT` serves the metrics of the mount to Prometheus: whether the store can be reached, failures and expiry of credentials, " +
		"unsaved changes and unpushed commits with their age, the last pull and push, conflicts, what is held back or waits for --confirm, bytes of the working copy, " +
		"events by result, requests and their errors. Alert rules for Prometheus, and a dashboard for Grafana, are in /usr/share/doc/wsmount/monitoring and in " +
		"integration/example/monitoring of the sources. In systemd's journal each record of a log has fields: `journalctl WSMOUNT_WORKSPACE=@acme/ops`, or WSMOUNT_MOUNTPOINT. What needs no collector: `notify` in wsmount.yaml(5) has wsmount tell a webhook, or run a program.", nil},
	{"ENVIRONMENT", "", [][2]string{
		{"WSMOUNT_CONFIG", "The host configuration, as --config."},
		{"WSMOUNT_STATE_DIR", "The state directory, as --state-dir."},
		{"XDG_CONFIG_HOME", "Where the directory wsmount with the host configuration lies, instead of ~/.config."},
		{"XDG_STATE_HOME", "Where the state directory wsmount lies, instead of ~/.local/state or, for root, /var/lib."},
		{"HOME, PATH", "Called by mount(8), which takes them away, the program uses the user's home directory and a usual search path."},
		{"NOTIFY_SOCKET", "With --foreground, systemd is told that the mount is ready, and that it stops."},
		{"NO_COLOR, TERM", "With NO_COLOR, or TERM=dumb, there are no colours on a terminal. Elsewhere there are none, and a line is as long as what is in it."},
		{"SOURCE_DATE_EPOCH", "The date of the manual page that `help --man` prints."},
	}},
	{"FILES", "", [][2]string{
		{"~/.config/wsmount/config.yaml", "The host configuration of a user: where addresses lead, and what manifests are granted. See wsmount.yaml(5), or `wsmount help config`."},
		{"/etc/wsmount/config.yaml", "That of the machine, where the user has none."},
		{"~/.config/wsmount/registry.json", "What `wsmount registry add` knows. It has a version (`schema`): v2 says whose the usual variables of the environment are, and a wsmount from before it refuses the file as one of a newer wsmount, since it would give them to another."},
		{"~/.config/wsmount/fetched", "Copies of the manifests that it fetched, for people: what the registry recorded of them counts."},
		{"~/.config/wsmount/published/", "The bundles that `wsmount publish` wrote, by owner, workspace and version."},
		{"~/.local/state/wsmount", "Working copies, locks and logs."},
		{"/var/lib/wsmount", "The same for root."},
		{"MOUNTPOINT/.wsmount", "A directory that is not listed. Its README tells a program in the mount, which need not know wsmount, what it may write, when that is sent, what waits, why something failed, and where earlier versions are."},
		{"/etc/fuse.conf", "`user_allow_other` lets users give --allow-other."},
	}},
	{"EXAMPLES", "" +
		"A workspace from nothing:\n" +
		"\n" +
		"  wsmount init ~/notes --id @me/notes --register\n" +
		"  wsmount @me/notes ~/mnt\n" +
		"  wsmount status ~/mnt\n" +
		"  wsmount umount ~/mnt\n" +
		"\n" +
		"A workspace whose WORKSPACE.md lies in its repository:\n" +
		"\n" +
		"  wsmount registry add github:acme/app#main\n" +
		"  wsmount @acme/app ~/mnt\n" +
		"\n" +
		"The turn of an agent ends; its changes are committed and pushed:\n" +
		"\n" +
		"  wsmount event ~/mnt turn-end\n" +
		"\n" +
		"Why a mount is refused, and by whom:\n" +
		"\n" +
		"  wsmount resolve @acme/app --explain\n" +
		"  wsmount doctor @acme/app", nil},
}
