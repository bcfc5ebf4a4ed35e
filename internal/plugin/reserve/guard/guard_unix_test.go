// SPDX-License-Identifier: Apache-2.0

//go:build unix

package guard

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// patience bounds every wait of these tests; a wait ends as soon as it can.
const patience = 30 * time.Second

// role says what this test binary is, when a test has started it: a holder. As a guard it is started by the holder.
const role = "REPRISE_TEST_ROLE"

// TestMain makes the binary play the processes of the tests: `holder FILE COMMAND...` runs the command under a guard, and FILE is
// where the guard notes what it has released in the holder's place.
func TestMain(m *testing.M) {
	switch {
	case Active():
		note := os.Args[1]
		Serve(os.Args[2:], func(_ context.Context, p Plan) error {
			return os.WriteFile(note, []byte(p.Namespace+"/"+p.Name+" "+p.Nonce), 0o600)
		})
	case os.Getenv(role) != "":
		hold()
	default:
		os.Exit(m.Run())
	}
}

// hold is the holder: it tells every event in a line of its standard output, and takes orders from its standard input.
func hold() {
	g, err := Start(os.Args[0], os.Args[1:], os.Args[2:])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	must(g.Plan(Plan{Namespace: "ns", Name: "reservation", Nonce: "sign"}))
	fmt.Println("guard", g.cmd.Process.Pid) // the test may kill it from here on
	commands := make(chan string)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	for {
		select {
		case e, ok := <-g.Events():
			if !ok {
				fmt.Println("crashed")
				for !g.Sweep() {
					<-time.After(insist)
				}
				fmt.Println("swept")
				return
			}
			told(g, e)
		case line := <-commands:
			if obeyed(g, line) {
				return
			}
		}
	}
}

func told(g *Guard, e Event) {
	switch {
	case e.Started != 0:
		g.Started(e.Started)
		fmt.Println("started", e.Started)
	case e.Failed != nil:
		fmt.Println("failed", e.Failed.Code, e.Failed.Message)
	case e.Ended != nil:
		fmt.Println("ended", e.Ended.Code, e.Ended.OutOfTime)
	case e.Gone:
		fmt.Println("gone")
	}
}

func obeyed(g *Guard, line string) (done bool) {
	verb, rest, _ := strings.Cut(line, " ")
	number, _ := strconv.Atoi(rest)
	switch verb {
	case "run":
		must(g.Run(Orders{Env: os.Environ()}))
	case "until":
		now := time.Now()
		must(g.Until(Until(now, time.Duration(number)*time.Millisecond), now, 0))
		fmt.Println("timed")
	case "signal":
		must(g.Signal(syscall.Signal(number)))
	case "end":
		must(g.End(time.Duration(number) * time.Millisecond))
	case "sweep":
		for !g.Sweep() {
			<-time.After(insist)
		}
		fmt.Println("swept")
	case "done":
		g.Done()
		return true
	}
	return false
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
	}
}

// cast is a holder, its guard, and a command, as processes.
type cast struct {
	*WithT
	t      *testing.T
	holder *exec.Cmd
	in     *os.File
	lines  chan string
	guard  int
	group  int
	dir    string
}

// play starts a holder for a command of the shell. The command finds the directory of the test in $DIR.
func play(t *testing.T, script string) *cast {
	t.Helper()
	c := &cast{WithT: NewWithT(t), t: t, lines: make(chan string, 100), dir: t.TempDir()}
	c.SetDefaultEventuallyTimeout(patience)
	r, w, err := os.Pipe()
	c.Expect(err).NotTo(HaveOccurred())
	out, theirs, err := os.Pipe()
	c.Expect(err).NotTo(HaveOccurred())
	c.holder = exec.Command(os.Args[0], filepath.Join(c.dir, "released"), "sh", "-c", script)
	c.holder.Env = append(os.Environ(), role+"=holder", "DIR="+c.dir)
	c.holder.Stdin, c.holder.Stdout, c.holder.Stderr = r, theirs, os.Stderr
	c.Expect(c.holder.Start()).To(Succeed())
	_, _ = r.Close(), theirs.Close()
	c.in = w
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = w.Close()
		_ = c.holder.Process.Kill()
		_ = c.holder.Wait()
		if c.guard != 0 && lives(c.guard) { // it would write in the directory to its end
			_ = syscall.Kill(c.guard, syscall.SIGKILL)
			c.Eventually(func() bool { return lives(c.guard) }).Should(BeFalse())
		}
		for _, pid := range c.living() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	c.guard = c.number("guard")
	return c
}

// order sends one to the holder.
func (c *cast) order(text string) {
	c.t.Helper()
	_, err := fmt.Fprintln(c.in, text)
	c.Expect(err).NotTo(HaveOccurred())
}

// heard waits for a line of the holder that begins like that, and returns the rest of it.
func (c *cast) heard(what string) string {
	c.t.Helper()
	var rest string
	c.Eventually(func(g Gomega) {
		var line string
		g.Expect(c.lines).To(Receive(&line))
		var found bool
		rest, found = strings.CutPrefix(line, what)
		g.Expect(found).To(BeTrue(), line)
	}).Should(Succeed())
	return strings.TrimSpace(rest)
}

func (c *cast) number(what string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.heard(what))
	c.Expect(err).NotTo(HaveOccurred())
	return n
}

// starts runs the command and waits until it has written the IDs of the processes it consists of.
func (c *cast) starts(processes int) {
	c.t.Helper()
	c.order("run")
	c.group = c.number("started")
	c.Eventually(c.pids).Should(HaveLen(processes))
}

// pids are the processes that the command has written into files of its directory.
func (c *cast) pids() []int {
	paths, _ := filepath.Glob(filepath.Join(c.dir, "*.pid"))
	var pids []int
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// living are those of them that live.
func (c *cast) living() []int {
	var living []int
	for _, pid := range c.pids() {
		if lives(pid) {
			living = append(living, pid)
		}
	}
	return living
}

func (c *cast) released() string {
	text, _ := os.ReadFile(filepath.Join(c.dir, "released"))
	return string(text)
}

// stubborn is a command with a child and, as a grandchild, a daemon that hear no signal.
const stubborn = `trap "" TERM HUP INT
(echo $(exec sh -c 'echo $PPID') > $DIR/child.pid; while :; do sleep 1; done) &
setsid sh -c 'trap "" TERM HUP INT; echo $$ > $DIR/daemon.pid; while :; do sleep 1; done' &
echo $$ > $DIR/main.pid
while :; do sleep 1; done`

func TestTheCommandAndAllItHasStartedEndWith(t *testing.T) {
	for name, c := range map[string]struct {
		kill     func(c *cast)
		released bool
		hears    string
	}{
		"the holder that is killed": {func(c *cast) { c.Expect(c.holder.Process.Kill()).To(Succeed()) }, true, ""},
		"the job of the shell that is killed": {func(c *cast) {
			c.Expect(syscall.Kill(c.holder.Process.Pid, syscall.SIGKILL)).To(Succeed())
		}, true, ""},
		"the guard that is killed":       {func(c *cast) { c.Expect(syscall.Kill(c.guard, syscall.SIGKILL)).To(Succeed()) }, false, "swept"},
		"the guard that is asked to end": {func(c *cast) { c.Expect(syscall.Kill(c.guard, syscall.SIGTERM)).To(Succeed()) }, false, "gone"},
		"the command that is killed":     {func(c *cast) { c.Expect(syscall.Kill(c.group, syscall.SIGKILL)).To(Succeed()) }, false, "gone"},
		"the order to end":               {func(c *cast) { c.order("end 10") }, false, "gone"},
		"the time":                       {func(c *cast) { c.order("until 300"); c.heard("timed") }, false, "ended 137 true"},
		"the time, while the holder stands still": {func(c *cast) {
			c.order("until 2000")
			c.heard("timed")
			c.Expect(c.holder.Process.Signal(syscall.SIGSTOP)).To(Succeed())
		}, false, ""},
		"a sweep, while the guard stands still": {func(c *cast) {
			c.Expect(syscall.Kill(c.guard, syscall.SIGSTOP)).To(Succeed())
			c.order("sweep")
		}, false, "swept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := play(t, stubborn)
			a.starts(3)
			a.Expect(a.living()).To(HaveLen(3))
			c.kill(a)
			a.Eventually(a.living).Should(BeEmpty())
			if c.hears != "" {
				a.heard(c.hears)
			}
			if c.released {
				a.Eventually(a.released).Should(Equal("ns/reservation sign"))
				a.Eventually(func() bool { return lives(a.guard) }).Should(BeFalse())
			} else {
				a.Expect(a.released()).To(BeEmpty(), "the holder does that")
			}
		})
	}
}

func TestTheGuardGivesBackWhatWasPlannedIfTheHolderIsKilledBeforeTheCommandRuns(t *testing.T) {
	t.Parallel()
	a := play(t, "exit 0")
	a.Expect(a.holder.Process.Kill()).To(Succeed())
	a.Eventually(a.released).Should(Equal("ns/reservation sign"))
	a.Eventually(func() bool { return lives(a.guard) }).Should(BeFalse())
}

func TestAGuardThatIsNotNeededAnyMoreGivesNothingBack(t *testing.T) {
	t.Parallel()
	a := play(t, "exit 0")
	a.order("run")
	a.heard("started")
	a.Expect(a.heard("ended")).To(Equal("0 false"))
	a.heard("gone")
	a.order("done")
	a.Eventually(func() bool { return lives(a.guard) }).Should(BeFalse())
	a.Expect(a.released()).To(BeEmpty())
}

func TestHowTheCommandEndedIsTold(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":                    "ended 0 false",
		"exit 3":                    "ended 3 false",
		"kill -9 $$":                "ended 137 false",
		"kill -TERM $$":             "ended 143 false",
		"exec /etc/passwd":          "ended 126 false",
		"exec /there/is/no/such":    "ended 127 false",
		"sleep 1000 & echo; exit 5": "ended 5 false",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			a := play(t, script)
			a.order("run")
			a.heard(want)
			a.heard("gone")
		})
	}
}

func TestACommandThatCannotBeRunSaysWhy(t *testing.T) {
	for command, want := range map[string]struct {
		code    int
		message string
	}{
		"there-is-no-such": {127, "there-is-no-such cannot be run: executable file not found in $PATH"},
		"/no/such/file":    {127, "/no/such/file cannot be run: no such file or directory"},
		"/etc/passwd":      {126, "/etc/passwd cannot be run: permission denied"},
		"/":                {126, "/ cannot be run: "},
	} {
		t.Run(command, func(t *testing.T) {
			g := NewWithT(t)
			_, failure := fork([]string{command}, Orders{})
			g.Expect(failure).NotTo(BeNil())
			g.Expect(failure.Code).To(Equal(want.code))
			g.Expect(failure.Message).To(HavePrefix(want.message))
		})
	}
}

func TestASignalIsPassedOn(t *testing.T) {
	t.Parallel()
	a := play(t, `trap "echo heard > $DIR/heard; exit 9" USR1; echo $$ > $DIR/main.pid; while :; do sleep 0.1; done`)
	a.starts(1)
	a.order(fmt.Sprintf("signal %d", syscall.SIGUSR1))
	a.heard("ended 9 false")
	a.Expect(filepath.Join(a.dir, "heard")).To(BeAnExistingFile())
	a.heard("gone")
}

func TestACommandThatEndsWhenAskedIsNotKilled(t *testing.T) {
	t.Parallel()
	a := play(t, `trap "exit 7" TERM; echo $$ > $DIR/main.pid; while :; do sleep 0.1; done`)
	a.starts(1)
	a.order("end 60000")
	a.heard("ended 7 false")
	a.heard("gone")
}

func TestACommandThatIsAskedToStandStillGoesOn(t *testing.T) {
	t.Parallel()
	a := play(t, `trap "exit 7" USR1; echo $$ > $DIR/main.pid; while :; do sleep 0.1; done`)
	a.starts(1)
	a.order(fmt.Sprintf("signal %d", syscall.SIGTSTP))
	a.order(fmt.Sprintf("signal %d", syscall.SIGUSR1))
	a.heard("ended 7 false")
}

func TestTheMarkerOfAGuardIsNotPassedOnToTheCommand(t *testing.T) {
	t.Parallel()
	a := play(t, `test -z "$`+Marker+`"`)
	a.order("run")
	a.heard("ended 0 false")
}

func TestALimitComesByWhicheverClockIsFirst(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	limit := Until(now, 10*time.Second)
	g.Expect(limit.Left(now)).To(Equal(10 * time.Second))
	asleep := Limit{wall: limit.wall.Add(-time.Hour), ticks: limit.ticks}
	g.Expect(asleep.Left(now)).To(BeNumerically("<", 0), "the machine slept: its ticks have stood still")
	setBack := Limit{wall: limit.wall.Add(time.Hour), ticks: limit.ticks}
	g.Expect(setBack.Left(now.Add(11*time.Second))).To(BeNumerically("<", 0), "somebody has set the clock back")

	late := &until{Wall: limit.wall, Left: 10 * time.Second}
	g.Expect(late.limit(now.Add(4*time.Second)).Left(now.Add(4*time.Second))).To(Equal(6*time.Second), "it has waited in the pipe")
	g.Expect(late.limit(now.Add(-4*time.Second)).Left(now.Add(-4*time.Second))).To(Equal(10*time.Second), "the clock was set back meanwhile")
}
