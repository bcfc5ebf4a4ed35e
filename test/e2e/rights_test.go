// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reprise.dev/reprise/test/e2e/audit"
)

const (
	// managerAccount is the service account of every manager that config/ installs.
	managerAccount = "reprise-manager"
	// rightsOverlay is config/namespaced for a namespace.
	rightsOverlay = "resources: [../../../../config/namespaced]\nnamespace: %s\n"
)

var _ = atEnd("The managers have used every right that they are given, and asked for nothing else", func(ctx context.Context) error {
	if node == nil {
		return fmt.Errorf("%w: it needs the API server's audit log", errNotHere)
	}
	asked, err := askedByManagers()
	if err != nil {
		return err
	}
	own, err := rightsIn(ctx, managerNamespace)
	if err != nil {
		return err
	}
	var judge audit.Judge
	for namespace, requests := range asked {
		rights, err := rightsIn(ctx, namespace)
		if err != nil {
			return err
		}
		judge.Show(rights, requests)
	}
	return verdict(judge.Unused(own), judge.Beyond())
})

// oursIn matches the accounts of managers: that of config/default, and those of tests in their namespaces.
var oursIn = regexp.MustCompile(`^system:serviceaccount:(` + managerNamespace + `|e2e-[a-z0-9]+):` + managerAccount + `$`)

// askedByManagers returns what the managers have asked for, by their namespaces.
func askedByManagers() (map[string][]audit.Request, error) {
	log, err := os.Open(node.AuditLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	all, err := audit.Read(log, oursIn.MatchString)
	if err != nil {
		return nil, err
	}
	asked := map[string][]audit.Request{}
	for _, request := range all {
		namespace := oursIn.FindStringSubmatch(request.User)[1]
		asked[namespace] = append(asked[namespace], request)
	}
	if len(asked[managerNamespace]) == 0 {
		return nil, errors.New("the audit log tells nothing of the manager of the suite")
	}
	return asked, nil
}

// manifests are those that managers of tests were installed with otherwise than by config/namespaced, by their namespaces.
var manifests sync.Map

// installedBy tells what gives the manager of a namespace its rights, if that is not config/namespaced.
func installedBy(namespace, manifest string) { manifests.Store(namespace, manifest) }

// rightsIn returns the rights of the manager of a namespace.
func rightsIn(ctx context.Context, namespace string) ([]audit.Right, error) {
	manifest, err := manifestOf(ctx, namespace)
	if err != nil {
		return nil, err
	}
	rights, err := audit.Granted(manifest, namespace, managerAccount)
	if err == nil && len(rights) == 0 {
		err = fmt.Errorf("the manager of %s was given no rights", namespace)
	}
	return rights, err
}

func manifestOf(ctx context.Context, namespace string) (string, error) {
	if manifest, found := manifests.Load(namespace); found {
		return fmt.Sprint(manifest), nil
	}
	if namespace == managerNamespace {
		return kustomized(ctx, filepath.Join(root(), "config", "default"))
	}
	dir := filepath.Join(workDir(), "rights-"+namespace)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, rightsOverlay, namespace), 0o600); err != nil {
		return "", err
	}
	return kustomized(ctx, dir)
}

func kustomized(ctx context.Context, dir string) (string, error) {
	manifest, err := here.Kubectl(ctx, "kustomize", dir).Output()
	if err != nil {
		return "", fmt.Errorf("kubectl kustomize %s: %w", dir, err)
	}
	return string(manifest), nil
}

// onlyTimeUses lists what the manager does ten minutes after a run or a group was made at the earliest: the full suite waits.
var onlyTimeUses = []audit.Right{
	{Group: "batch.reprise.dev", Resource: "jobruns", Verb: "delete"},
	{Group: "batch.reprise.dev", Resource: "jobgroups", Verb: "delete"},
}

func verdict(unused []audit.Right, beyond []audit.Request) error {
	var said []string
	for _, right := range unused {
		kind := audit.Right{Group: right.Group, Resource: right.Resource, Verb: right.Verb}
		if os.Getenv("E2E") == "full" || !slices.Contains(onlyTimeUses, kind) {
			said = append(said, "never used: "+right.String())
		}
	}
	for _, request := range beyond {
		said = append(said, "not granted: "+request.String())
	}
	if len(said) == 0 {
		return nil
	}
	return errors.New(strings.Join(said, "\n"))
}
