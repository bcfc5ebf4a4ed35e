// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

func TestACommandRunsWithItsSlotAndItsExitCodeIsPassedOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	s.occupied()
	s.wants("next")
	p := s.reserve(`echo "$REPRISE_RESERVATION"; cat; echo oops >&2; exit 42`)
	s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationActive))
	s.Eventually(p.err.String).Should(ContainSubstring("is next in line: the slots are held by run first"))
	s.first()
	_, err := io.WriteString(p.in, "what it reads\n")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(p.in.Close()).To(Succeed())
	r := p.result()
	s.Expect(r.code).To(Equal(42))
	dr := s.reservations()[0]
	s.Expect(r.out).To(Equal(s.ns + "/" + dr.Name + "\nwhat it reads\n"))
	s.Expect(r.err).To(ContainSubstring("oops"))
	s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationReleased))
	s.Eventually(s.phase("next")).Should(Equal(batchv1alpha1.JobRunCompleted))
	s.Expect(s.began()).To(Equal([]string{"first", "next"}))
	s.Expect(dr.Spec.HolderIdentity).To(ContainSubstring("@"))
}

func TestTheCommandStartsOnlyWhenItsGrantWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	acknowledgement := s.trap(t, &trap{match: renewal})
	p := s.reserve(working)
	s.Eventually(acknowledgement.caught).Should(BeClosed())
	s.Expect(s.stand()).To(ConsistOf(batchv1alpha1.ReservationGranted))
	s.Consistently(s.living, "500ms").Should(BeEmpty())
	acknowledgement.open()
	s.working()
	s.leave()
	s.Expect(p.result().code).To(BeZero())
}

func TestWhatReserveExitsWith(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		flags  []string
		code   int
		says   string
	}{
		"a command that succeeds":                 {"exit 0", nil, 0, ""},
		"a command that is killed":                {"kill -9 $$", nil, 137, ""},
		"a queue that is misspelt":                {"true", []string{"--queue=ome"}, 125, "did you mean one"},
		"a queue that has no such type":           {"true", []string{"--type=story", "--queue=typed"}, 2, `"story"`},
		"a claim that is none":                    {"true", []string{"--claims=gpu=zero"}, 2, `--claims "gpu=zero" is no claim`},
		"a resource that the queue does not have": {"true", []string{"--claims=gpu"}, 2, `"gpu"`},
		"a lease that is too short":               {"true", []string{"--lease=2s"}, 2, "--lease must be"},
		"no slot in time":                         {"true", []string{"--queue=none", "--timeout=1s"}, 124, "no slot of queue none was free in time"},
		"a name that another reservation has":     {"true", []string{"--name=taken"}, 125, "reservation taken exists already"},
		"a namespace that does not exist":         {"true", []string{"--namespace=no-such", "--queue=default"}, 125, "no-such"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.killable()
			none, one := int32(0), int32(1)
			closed := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
			closed.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &none}
			typed := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Name: "typed"}}
			typed.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Types: []batchv1alpha1.TypeConcurrency{{Name: "essay", Limit: &one}}}
			taken := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
			taken.Spec.Queue = "none"
			s.create(closed, typed, taken)
			r := s.reserve(c.script, c.flags...).result()
			s.Expect(r.code).To(Equal(c.code), r.err)
			s.Expect(r.err).To(ContainSubstring(c.says))
			s.Eventually(func() []string { return s.unended("taken") }).Should(BeEmpty())
			s.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(taken), taken)).To(Succeed())
			s.Expect(taken.Spec.Release).To(BeFalse(), "it is somebody else's")
		})
	}
}

// unended are the reservations that have not ended, but for one.
func (s *stage) unended(but string) []string {
	var names []string
	for _, dr := range s.reservations() {
		if dr.Name != but && !dr.Status.Phase.Terminal() {
			names = append(names, dr.Name)
		}
	}
	return names
}

func TestASignalBreaksOffTheWaitAndIsPassedOnToTheCommand(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.killable()
		s.occupied()
		p := s.reserve(working)
		s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationActive))
		p.signal(syscall.SIGINT)
		s.Expect(p.result().code).To(Equal(130))
		s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationReleased))
	})
	t.Run("while the command works", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.killable()
		p := s.reserve(`trap "exit 9" TERM; echo $$ > $DIR/main.pid; while :; do sleep 0.1; done`)
		s.Eventually(s.living).Should(HaveLen(1))
		p.signal(syscall.SIGTERM)
		s.Expect(p.result().code).To(Equal(9))
		s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationReleased))
	})
}

func TestTheCommandIsEndedWhenSomebodyElseEndsItsReservation(t *testing.T) {
	for name, end := range map[string]func(s *stage, dr *batchv1alpha1.DirectReservation) error{
		"by deleting it": func(s *stage, dr *batchv1alpha1.DirectReservation) error { return s.Delete(s.t.Context(), dr) },
		"by releasing it": func(s *stage, dr *batchv1alpha1.DirectReservation) error {
			return s.Patch(s.t.Context(), dr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"release":true}}`)))
		},
		"by deleting it and making another of its name": func(s *stage, dr *batchv1alpha1.DirectReservation) error {
			if err := s.Delete(s.t.Context(), dr); err != nil {
				return err
			}
			other := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: dr.Namespace, Name: dr.Name}}
			other.Spec.Queue = "one"
			return s.Create(s.t.Context(), other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.killable()
			p := s.reserve(working)
			s.working()
			dr := s.reservations()[0]
			s.Expect(end(s, &dr)).To(Succeed())
			r := p.result()
			s.Expect(r.code).To(Equal(75), r.err)
			s.Expect(r.err).To(ContainSubstring("reservation " + dr.Name + " was "))
			s.Expect(s.living()).To(BeEmpty())
			if name == "by deleting it and making another of its name" {
				s.Consistently(s.stand, "1s").ShouldNot(ContainElement(batchv1alpha1.ReservationReleased), "it is somebody else's")
			}
		})
	}
}

func TestTheCommandHasEndedBeforeItsSlotIsGivenToAnotherWhenTheAPIServerDoesNotAnswer(t *testing.T) {
	for name, holds := range map[string]func(s *stage, p *command){
		"and the plugin lives":        func(*stage, *command) {},
		"and the plugin stands still": func(_ *stage, p *command) { p.signal(syscall.SIGSTOP) },
		"and the guard stands still": func(s *stage, p *command) {
			for _, pid := range childrenOf(p.cmd.Process.Pid) {
				s.Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.killable()
			p := s.reserve(working)
			s.working()
			s.wants("next")
			s.block()
			holds(s, p)
			s.Eventually(s.living).Should(BeEmpty())
			ended := time.Now()
			dr := s.reservations()[0]
			s.Expect(dr.Status.Phase).To(Equal(batchv1alpha1.ReservationGranted), "the slot is still its own")
			s.Eventually(s.phase("next")).Should(Equal(batchv1alpha1.JobRunCompleted))
			s.Expect(s.broken).To(BeEmpty())
			s.Expect(ended).To(BeTemporally("<", dr.Spec.RenewTime.Add(reservation.Lease(&dr)+reservation.ClockAllowance)))
			p.signal(syscall.SIGCONT)
			s.unblock()
			if r := p.result(); name != "and the guard stands still" {
				s.Expect(r.code).To(Equal(75), r.err)
			} else {
				s.Expect(r.code).NotTo(BeZero())
			}
		})
	}
}

func TestAShortOutageOfTheAPIServerDoesNoHarm(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	p := s.reserve(working)
	s.working()
	s.block()
	s.Eventually(p.err.String).Should(ContainSubstring("the slot could not be renewed; the command is ended in"))
	s.unblock()
	s.Eventually(p.err.String).Should(ContainSubstring("the slot is renewed again"))
	s.Expect(s.living()).To(HaveLen(2))
	s.leave()
	s.Expect(p.result().code).To(BeZero())
	s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationReleased))
}

func TestAReservationWhosePluginAndGuardAreKilledAtOnceExpires(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	p := s.reserve(`echo $$ > $DIR/main.pid; while :; do sleep 0.1; done`)
	s.Eventually(s.living).Should(HaveLen(1))
	s.wants("next")
	guards := childrenOf(p.cmd.Process.Pid)
	p.signal(syscall.SIGSTOP) // it sees nothing of the guard's end
	for _, pid := range append(guards, p.cmd.Process.Pid) {
		s.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	}
	s.Eventually(s.living).Should(BeEmpty(), "the kernel kills the command")
	s.Eventually(s.phase("next")).Should(Equal(batchv1alpha1.JobRunCompleted))
	s.Expect(s.broken).To(BeEmpty())
	s.Expect(s.stand()).To(ConsistOf(batchv1alpha1.ReservationExpired))
}

func TestACreationThatLandsAfterThePluginWasKilledHoldsUpNobodyForLong(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	late := s.trap(t, &trap{match: creation, lands: true})
	p := s.reserve(working)
	s.Eventually(late.caught).Should(BeClosed())
	p.signal(syscall.SIGKILL)
	p.result() // the guard has ended, too: it has found nothing
	s.Expect(s.reservations()).To(BeEmpty())
	late.open()
	s.Eventually(s.reservations).Should(HaveLen(1))
	s.wants("next")
	s.Eventually(s.phase("next")).Should(Equal(batchv1alpha1.JobRunCompleted))
	s.Expect(s.stand()).To(ConsistOf(batchv1alpha1.ReservationExpired))
	s.Expect(s.living()).To(BeEmpty())
}

func TestTwoThatReserveAtOnceHaveTheSlotOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	const alone = `mkdir $DIR/busy || exit 50; sleep 0.3; rmdir $DIR/busy || exit 51`
	a, b, c := s.reserve(alone), s.reserve(alone), s.reserve(alone)
	for _, p := range []*command{a, b, c} {
		r := p.result()
		s.Expect(r.code).To(BeZero(), r.err)
	}
	s.Eventually(s.stand).Should(And(HaveLen(3), HaveEach(batchv1alpha1.ReservationReleased)))
}

// TestTheCommandHasTheTerminal runs a shell that reads from a terminal, gets its Ctrl-C, and gives it back.
func TestTheCommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.killable()
	script := `kubectl-reprise reserve --kubeconfig=` + s.kubeconfig + ` --namespace=` + s.ns + ` --queue=one --lease=10s -- sh -c '
trap "echo interrupted" INT
read line; echo "read $line"; test -t 0 && echo terminal
while ! test -e $DIR/go; do sleep 0.1; done
exit 7'
echo "code $?"; read line; echo "back $line"`
	shell := exec.CommandContext(t.Context(), "sh", "-c", script)
	shell.Env = []string{"HOME=" + t.TempDir(), "DIR=" + s.dir, "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH")}
	terminal, err := pty.Start(shell)
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = terminal.Close()
		_ = shell.Process.Kill()
		_ = shell.Wait()
	})
	shown := &output{}
	go func() { _, _ = io.Copy(shown, bufio.NewReader(terminal)) }()
	types := func(text string) {
		t.Helper()
		_, err := io.WriteString(terminal, text)
		s.Expect(err).NotTo(HaveOccurred())
	}
	s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationGranted), shown.String)
	types("hello\n")
	s.Eventually(shown.String).Should(And(ContainSubstring("read hello"), ContainSubstring("terminal")))
	types("\x03")
	s.Eventually(shown.String).Should(ContainSubstring("interrupted"))
	types("\x1a") // Ctrl-Z does nothing
	s.Expect(os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600)).To(Succeed())
	s.Eventually(shown.String).Should(ContainSubstring("code 7"))
	types("again\n")
	s.Eventually(shown.String).Should(ContainSubstring("back again"), "the shell has the terminal again")
	s.Expect(strings.Count(shown.String(), "interrupted")).To(Equal(1))
	s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationReleased))
}
