// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"slices"
	"testing"
)

func TestMountsBelowADirectoryAreFoundInTheOrderOfMounting(t *testing.T) {
	const mountinfo = `21 1 254:0 / / rw shared:1 - ext4 /dev/vda rw
30 21 0:30 / /run/reprise rw - ext4 /dev/vda rw
31 30 0:31 / /run/reprise/kubelet/pods/u1/volumes/kubernetes.io~projected/token rw - tmpfs tmpfs rw
32 30 0:32 / /run/reprise/kubelet/a\040b rw - tmpfs tmpfs rw
33 21 0:33 / /run/reprisal/x rw - tmpfs tmpfs rw
34 21 0:34 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/c1/rootfs rw - overlay overlay rw
too short
`
	got := mountsBelow(mountinfo, "/run/reprise", "/run/containerd")
	want := []string{
		"/run/reprise/kubelet/pods/u1/volumes/kubernetes.io~projected/token",
		"/run/reprise/kubelet/a b",
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/c1/rootfs",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
