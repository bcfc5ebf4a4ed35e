// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// CutPod takes a pod off the network, until RestorePod: nothing reaches it and it reaches nothing, the API server included.
// Connections are not closed, their packets get lost.
func (n *Node) CutPod(ctx context.Context, podUID string) error {
	return n.setPodLink(ctx, podUID, "down")
}

// RestorePod puts a pod back on the network after CutPod.
func (n *Node) RestorePod(ctx context.Context, podUID string) error {
	return n.setPodLink(ctx, podUID, "up")
}

// setPodLink switches our end of a pod's link, so that the pod keeps its addresses and routes.
func (n *Node) setPodLink(ctx context.Context, podUID, state string) error {
	pid, err := n.sandbox(ctx, podUID)
	if err != nil {
		return err
	}
	index, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/sys/class/net/eth0/iflink", pid))
	if err != nil {
		return fmt.Errorf("pod %s has no link: %w", podUID, err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(index)))
	if err != nil {
		return err
	}
	link, err := net.InterfaceByIndex(number)
	if err != nil {
		return fmt.Errorf("the link of pod %s: %w", podUID, err)
	}
	return command(ctx, "/", "ip", "link", "set", link.Name, state)
}

// sandbox returns the process that holds a pod's namespaces.
func (n *Node) sandbox(ctx context.Context, podUID string) (int, error) {
	ids, err := n.ctr.containers(ctx, fmt.Sprintf("labels.%q==%s,labels.%q==sandbox", podUIDLabel, podUID, kindLabel))
	if err != nil {
		return 0, err
	}
	tasks, err := n.ctr.tasks(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if pid, running := tasks[id]; running {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("pod %s does not run", podUID)
}
