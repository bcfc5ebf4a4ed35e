// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// start starts a control plane that the test stops. The user's KUBECONFIG is one that must not be read.
func start(t *testing.T, o Options) *Plane {
	t.Helper()
	t.Setenv("KUBECONFIG", "/nonexistent/not-for-tests")
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // a first build of the binaries takes minutes
	defer cancel()
	plane, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}

func clientOf(t *testing.T, p *Plane) client.Client {
	t.Helper()
	c, err := client.New(p.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until the test passes.
func eventually(t *testing.T, what string, test func(ctx context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, test); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func sleepJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sleep"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "none"}},
		}}},
	}
}

func TestAJobGetsItsPodAndTakesItAlong(t *testing.T) {
	plane := start(t, Options{ControllerManager: true})
	c := clientOf(t, plane)
	job := sleepJob()
	if err := c.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	count := func(want int) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			err := c.List(ctx, &pods, client.InNamespace("default"))
			return len(pods.Items) == want, err
		}
	}
	eventually(t, "the Job controller makes a pod", count(1))
	if err := c.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the garbage collector takes it away", count(0))
}

func TestPodsAreAdmittedWithoutAServiceAccount(t *testing.T) {
	c := clientOf(t, start(t, Options{}))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", Name: "p"}, Spec: sleepJob().Spec.Template.Spec}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

func TestAUserHasTheRightsThatRBACGives(t *testing.T) {
	plane := start(t, Options{})
	config, kubeconfig, err := plane.User("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	jane, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := jane.List(t.Context(), &pods); !apierrors.IsForbidden(err) {
		t.Errorf("listing pods without a role: %v, want forbidden", err)
	}
	for _, args := range [][]string{
		{"create", "clusterrole", "pod-reader", "--verb=list", "--resource=pods"},
		{"create", "clusterrolebinding", "readers", "--clusterrole=pod-reader", "--group=readers"},
	} {
		if out, err := plane.Kubectl(t.Context(), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	eventually(t, "the role is known", func(ctx context.Context) (bool, error) {
		err := jane.List(ctx, &pods)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	who := plane.Kubectl(t.Context(), "--kubeconfig", kubeconfig, "auth", "whoami")
	out, err := who.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "jane") {
		t.Errorf("the user's kubeconfig: %v: %s", err, out)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	plane := start(t, Options{ControllerManager: true})
	children := plane.processes
	if len(children) != 3 {
		t.Errorf("%d processes, want 3", len(children))
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		if child.cmd.ProcessState == nil {
			t.Errorf("%s still runs", child.name)
		}
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v (%v)", left, err)
	}
	if err := plane.Stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

func TestADirectoryKeepsTheDataOfAControlPlane(t *testing.T) {
	dir := t.TempDir()
	first := start(t, Options{Dir: dir, Fsync: true})
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	if err := clientOf(t, first).Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, Options{Dir: dir, Fsync: true})
	if err := clientOf(t, second).Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestAProcessThatDiesIsReported(t *testing.T) {
	plane := start(t, Options{})
	if err := plane.Err(); err != nil {
		t.Fatalf("while all run: %v", err)
	}
	if err := plane.processes[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-plane.Ended()
	if err := plane.Err(); err == nil || !strings.Contains(err.Error(), kubeAPIServer) {
		t.Errorf("error %v does not name the process", err)
	}
}

func TestAFlagThatTheAPIServerRefusesIsAnErrorWithItsWords(t *testing.T) {
	_, err := Start(t.Context(), Options{APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v does not say what is wrong", err)
	}
}

func TestAnExistingClusterIsUsedOnlyByNameAndLeftRunning(t *testing.T) {
	theirs := start(t, Options{})
	t.Setenv("KUBECONFIG", theirs.Kubeconfig())
	t.Setenv("CLUSTER", "existing")
	for context, complaint := range map[string]string{"": "CONTEXT", "production": "reprise-local"} {
		t.Setenv("CONTEXT", context)
		if _, err := Acquire(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("CONTEXT=%q: error %v does not speak of %s", context, err, complaint)
		}
	}
	t.Setenv("CONTEXT", "reprise-local")
	plane, err := Acquire(t.Context(), Options{CRDDirs: []string{"internal/controlplane/testdata"}})
	if err != nil {
		t.Fatal(err)
	}
	if !plane.Existing() || plane.Config().Host != theirs.Config().Host {
		t.Errorf("existing: %t, host %s, want that of %s", plane.Existing(), plane.Config().Host, theirs.Config().Host)
	}
	if out, err := plane.Kubectl(t.Context(), "get", "samples").CombinedOutput(); err != nil {
		t.Errorf("the CRD is not there: %v: %s", err, out)
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	var namespaces corev1.NamespaceList
	if err := clientOf(t, theirs).List(t.Context(), &namespaces); err != nil {
		t.Errorf("the cluster is gone: %v", err)
	}
}

func TestWithoutCLUSTERTheUsersClusterIsNotTouched(t *testing.T) {
	theirs := start(t, Options{})
	t.Setenv("KUBECONFIG", theirs.Kubeconfig())
	t.Setenv("CLUSTER", "")
	t.Setenv("CONTEXT", "reprise-local")
	own, err := Acquire(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if own.Existing() || own.Config().Host == theirs.Config().Host {
		t.Errorf("the user's cluster at %s is used", theirs.Config().Host)
	}
	if err := own.Stop(); err != nil {
		t.Error(err)
	}
}
