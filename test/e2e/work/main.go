// SPDX-License-Identifier: Apache-2.0

// Command work is the one program of the test image: what the containers of end-to-end tests do. It needs nothing but
// itself, no shell and no rights.
//
//	work -print hello -sleep 5s -on-term 10s -exit 0
//
// prints, sleeps, and exits. SIGTERM ends it at once with 143, as it ends a program that does not know the signal; with
// -on-term it goes on for that long first, and then exits as -exit says. A command, given after the flags, is short for some:
//
//	sleep 30s      -sleep 30s
//	exit 3         -exit 3
//	grace 20s      -pause -on-term 20s
//	eat            -eat: takes memory until it is killed
//	print TEXT...  -print TEXT
//	serve :8080    -serve :8080: answers HTTP calls, and tells of them
//	pause          -pause: does nothing until SIGTERM, and then exits with 0; the process of a pod's sandbox
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// exitUsage is the exit code of a call that is not understood.
const exitUsage = 64

func main() {
	t, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "work:", err)
		os.Exit(exitUsage)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	os.Exit(t.run(os.Stdout, ended))
}

// parse reads the flags and the command.
func parse(args []string, usage io.Writer) (*task, error) {
	t := &task{}
	flags := flag.NewFlagSet("work", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&t.text, "print", "", "Print this line first.")
	flags.DurationVar(&t.sleep, "sleep", 0, "Sleep for this long.")
	flags.BoolVar(&t.pause, "pause", false, "Wait for SIGTERM.")
	flags.BoolVar(&t.eat, "eat", false, "Take memory until killed.")
	flags.StringVar(&t.address, "serve", "", "Answer HTTP calls at this address.")
	flags.DurationVar(&t.onTerm, "on-term", 0, "How long to go on after SIGTERM (default not at all, and exit with 143).")
	flags.IntVar(&t.code, "exit", 0, "Exit with this code.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() == 0 {
		return t, nil
	}
	short, err := longer(flags.Args())
	if err != nil {
		return nil, err
	}
	return t, flags.Parse(short)
}
