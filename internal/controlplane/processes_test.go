// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// waits is a program that works once it has said so, and stays.
func waits(dir string) Program {
	return Program{
		Name: "waits", Path: "/bin/sh", Args: []string{"-c", "echo here; exec sleep 1000"},
		Ready: func(context.Context) error {
			log, err := os.ReadFile(filepath.Join(dir, "waits.log"))
			if err == nil && !strings.Contains(string(log), "here") {
				err = errors.New("it has said nothing yet")
			}
			return err
		},
	}
}

func TestAnEndThatNobodyAskedForIsReported(t *testing.T) {
	dir := t.TempDir()
	p := NewProcesses(dir)
	if err := p.Run(t.Context(), waits(dir)); err != nil {
		t.Fatal(err)
	}
	if err := p.processes[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if err := p.KillAll(); err != nil {
		t.Error(err)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "waits ended") {
		t.Errorf("the reason is %v", err)
	}
}

func TestKillAllEndsEveryProcessAndNothingCanBeStartedAgain(t *testing.T) {
	dir := t.TempDir()
	p := NewProcesses(dir)
	if err := p.Run(t.Context(), waits(dir)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.KillAll(); err != nil {
			t.Error(err)
		}
	}
	<-p.Ended()
	if !p.processes[0].hasEnded() || p.Err() != nil {
		t.Errorf("ended %t, reported %v", p.processes[0].hasEnded(), p.Err())
	}
	if p.Restart(t.Context(), "waits") == nil {
		t.Error("it was started again")
	}
}
