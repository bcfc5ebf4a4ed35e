// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestTheExitCodeOfACommand(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		run  func(ctx context.Context) error
		code int
		says string
	}{
		"that succeeds":                  {nil, func(context.Context) error { return nil }, 0, ""},
		"that fails":                     {nil, func(context.Context) error { return errors.New("no") }, ExitFailed, "error: no\n"},
		"that was misused":               {nil, func(context.Context) error { return Usagef("not so") }, ExitUsage, "error: not so\n"},
		"that waited in vain":            {nil, func(context.Context) error { return Timeoutf("too long") }, ExitTimeout, "error: too long\n"},
		"that has said all":              {nil, func(context.Context) error { return &ExitError{Code: 7} }, 7, ""},
		"with an argument that it lacks": {[]string{"x"}, nil, ExitUsage, "error: unknown command \"x\" for \"do\"\nsee: do --help\n"},
		"with text for a terminal":       {nil, func(context.Context) error { return errors.New("a\x1b[31mb\nc") }, ExitFailed, "error: a [31mb\nc\n"},
		"that is interrupted": {nil, func(ctx context.Context) error {
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			<-ctx.Done()
			return errors.New("the request was broken off")
		}, 143, "error: ended by a signal: terminated\n"},
		"that is interrupted and done all the same": {nil, func(ctx context.Context) error {
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			<-ctx.Done()
			return nil
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			streams, _, _, out := genericiooptions.NewTestIOStreams()
			f := NewFactory(streams)
			cmd := &cobra.Command{Use: "do", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) }}
			g.Expect(f.Execute(t.Context(), cmd, c.args)).To(Equal(c.code))
			g.Expect(out.String()).To(Equal(c.says))
		})
	}
}

func TestACommandThatTakesTheSignalsGoesOn(t *testing.T) {
	g := NewWithT(t)
	f := NewFactory(genericiooptions.NewTestIOStreamsDiscard())
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
		caught := f.TakeSignals()
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGHUP} {
			g.Expect(syscall.Kill(os.Getpid(), s)).To(Succeed())
			g.Eventually(caught).Should(Receive(Equal(s)))
		}
		return cmd.Context().Err()
	}}
	g.Expect(f.Execute(t.Context(), cmd, nil)).To(BeZero())
}
