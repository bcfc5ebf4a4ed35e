// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// ctr is containerd's own client program. It comes with every containerd and speaks the language of that one.
type ctr struct{ path string }

// args are the arguments that name the runtime and Kubernetes' part of it.
func (c ctr) args(args ...string) []string {
	return append([]string{"--address", runtimeSocket, "--namespace", "k8s.io"}, args...)
}

// run returns what ctr prints.
func (c ctr) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.path, c.args(args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// answers passes when containerd works, its part for Kubernetes included.
func (c ctr) answers(ctx context.Context) error {
	_, err := c.run(ctx, "containers", "list", "--quiet")
	return err
}

func (c ctr) load(ctx context.Context, tarball string) error {
	_, err := c.run(ctx, "images", "import", "--digests=false", tarball)
	return err
}

// touch makes containerd report an event that changes nothing.
func (c ctr) touch(ctx context.Context, value string) error {
	_, err := c.run(ctx, "namespaces", "label", "k8s.io", "reprise.dev/journal="+value)
	return err
}

// containers returns the ids of the containers that match a filter in containerd's language, or of all.
func (c ctr) containers(ctx context.Context, filters ...string) ([]string, error) {
	out, err := c.run(ctx, append([]string{"containers", "list", "--quiet"}, filters...)...)
	return strings.Fields(string(out)), err
}

// labels returns the labels of a container.
func (c ctr) labels(ctx context.Context, id string) (map[string]string, error) {
	out, err := c.run(ctx, "containers", "info", id)
	if err != nil {
		return nil, err
	}
	var info struct{ Labels map[string]string }
	err = json.Unmarshal(out, &info)
	return info.Labels, err
}

// tasks returns the first processes of all containers that have one, by container.
func (c ctr) tasks(ctx context.Context) (map[string]int, error) {
	out, err := c.run(ctx, "tasks", "list")
	if err != nil {
		return nil, err
	}
	return parseTasks(string(out))
}

// parseTasks reads a table of container, process and status, with a line of titles.
func parseTasks(table string) (map[string]int, error) {
	tasks := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		words := strings.Fields(line)
		if i == 0 || len(words) == 0 {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("ctr tasks list says %q", line)
		}
		pid, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, fmt.Errorf("ctr tasks list says %q", line)
		}
		tasks[words[0]] = pid
	}
	return tasks, nil
}
