// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/operator"
)

// patience bounds every wait. It is long because the machine may be busy; a wait ends as soon as it can.
const patience = 90 * time.Second

// stage has the processes of one test, and what the runs call.
type stage struct {
	*WithT
	t *testing.T
	client.Client
	processes *controlplane.Processes
	metrics   string // address of the manager's
	bearer    string // token of an account that may read them
	calls     string // URL of the server that runs and announcements call
	managers  int    // started so far
}

func newStage(t *testing.T) *stage {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	c, err := client.New(plane.Config(), client.Options{Scheme: operator.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	logs := t.TempDir()
	s := &stage{WithT: g, t: t, Client: c, processes: controlplane.NewProcesses(logs), metrics: address(t), calls: serve(t)}
	t.Cleanup(func() {
		if err := s.processes.KillAll(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			s.tell(logs)
		}
	})
	return s
}

// tell shows the end of every log.
func (s *stage) tell(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		s.t.Logf("%s:\n%s", filepath.Base(file), text[max(0, len(text)-2000):])
	}
}

// serve answers by path: /well, /broken and /gone at once, /hang not before the end of the test.
func serve(t *testing.T) string {
	t.Helper()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/hang":
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return server.URL
}

// manage starts a manager, and ends the one before it without a word.
func (s *stage) manage() {
	s.t.Helper()
	if s.managers > 0 {
		s.Expect(s.processes.Kill(s.manager())).To(Succeed())
	}
	s.managers++
	probes := address(s.t)
	s.Expect(s.processes.Run(s.t.Context(), controlplane.Program{
		Name: s.manager(), Path: binaries["manager"],
		Args: []string{
			"--kubeconfig=" + plane.Kubeconfig(), "--leader-elect=false", "--leader-elect-namespace=default", "--startup-window=0",
			"--cleanup-stale-on-startup=false", "--allow-outgoing-cidr=127.0.0.0/8",
			"--health-probe-bind-address=" + probes, "--metrics-bind-address=" + s.metrics,
		},
		Ready: func(ctx context.Context) error { return answers(ctx, "http://"+probes+"/readyz") },
	})).To(Succeed())
}

func (s *stage) manager() string { return fmt.Sprintf("manager-%d", s.managers) }

// apply creates what is in a file.
func (s *stage) apply(file string) {
	s.t.Helper()
	text, err := os.ReadFile(file)
	s.Expect(err).NotTo(HaveOccurred())
	cmd := plane.Kubectl(s.t.Context(), "create", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(string(text), "URL", s.calls))
	out, err := cmd.CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
}

// token returns one of an account that may read metrics, by the role that config/prometheus has for it.
func (s *stage) token() string {
	s.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prometheus"}}
	s.Expect(s.Create(s.t.Context(), account)).To(Succeed())
	for _, args := range [][]string{
		{"create", "-f", filepath.Join(root, "config", "prometheus", "metrics_reader_role.yaml")},
		{"create", "clusterrolebinding", "reprise-metrics", "--clusterrole=reprise-metrics-reader", "--serviceaccount=default:prometheus"},
	} {
		out, err := plane.Kubectl(s.t.Context(), args...).CombinedOutput()
		s.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	request := &authenticationv1.TokenRequest{}
	s.Expect(s.SubResource("token").Create(s.t.Context(), account, request)).To(Succeed())
	s.bearer = request.Status.Token
	return s.bearer
}

// scrape returns what the manager serves.
func (s *stage) scrape() string {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the certificate is its own
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "https://"+s.metrics+"/metrics", nil)
	s.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+s.bearer)
	response, err := client.Do(request)
	s.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(response.StatusCode).To(Equal(http.StatusOK))
	return string(body)
}

// run reads one of the namespace team.
func (s *stage) run(name string) *batchv1alpha1.JobRun {
	s.t.Helper()
	r := &batchv1alpha1.JobRun{}
	s.Expect(s.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, r)).To(Succeed())
	return r
}

func (s *stage) reaches(name string, phase batchv1alpha1.JobRunPhase) *batchv1alpha1.JobRun {
	s.t.Helper()
	s.Eventually(func() batchv1alpha1.JobRunPhase { return s.run(name).Status.Phase }).Should(Equal(phase), name)
	return s.run(name)
}

// outlive makes a pod that works for a run and whose node never answers, cancels the run, has the pod asked to end, and confirms
// the suspension of the Job, as the Job controller would.
func (s *stage) outlive(name string) {
	s.t.Helper()
	r := s.reaches(name, batchv1alpha1.JobRunRunning)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Labels: map[string]string{
			batchv1alpha1.LabelRunUID: string(r.UID), batchv1alpha1.LabelRun: r.Name,
			batchv1alpha1.LabelChain: string(r.UID), batchv1alpha1.LabelQueue: r.Status.Queue,
		}},
		Spec: corev1.PodSpec{NodeName: "lost", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "work"}}},
	}
	s.Expect(s.Create(s.t.Context(), pod)).To(Succeed())
	s.Expect(s.Patch(s.t.Context(), r, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`)))).To(Succeed())
	s.Expect(s.Delete(s.t.Context(), pod, client.GracePeriodSeconds(1))).To(Succeed())
	job := &batchv1.Job{}
	s.Eventually(func() bool {
		s.Expect(s.Get(s.t.Context(), client.ObjectKey{Namespace: r.Namespace, Name: r.Status.JobName}, job)).To(Succeed())
		return *job.Spec.Suspend
	}).Should(BeTrue())
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
	s.Expect(s.Status().Update(s.t.Context(), job)).To(Succeed())
}

// release gives a reservation back once it is granted.
func (s *stage) release(name string) {
	s.t.Helper()
	dr := &batchv1alpha1.DirectReservation{}
	s.Eventually(func() batchv1alpha1.DirectReservationPhase {
		s.Expect(s.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, dr)).To(Succeed())
		return dr.Status.Phase
	}).Should(Equal(batchv1alpha1.ReservationGranted))
	s.Expect(s.Patch(s.t.Context(), dr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"release":true}}`)))).To(Succeed())
}
