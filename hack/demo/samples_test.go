// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
)

func TestTheSamplesHaveWhatTheStoryTells(t *testing.T) {
	samples, err := readSamples(filepath.Join("..", "..", "config", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[[2]string]sample{}
	for _, s := range samples {
		there[[2]string{s.kind, s.name}] = s
	}
	for _, want := range [][2]string{
		{"JobQueue", queueName},
		{"ScheduledJob", everyName}, {"ScheduledJob", onceName},
		{"JobRun", byHandName}, {"JobRun", flakyName}, {"JobRun", slowName}, {"JobRun", podsName},
		{"DirectReservation", reserveName},
	} {
		s, ok := there[want]
		if !ok {
			t.Errorf("there is no %s %s", want[0], want[1])
		}
		if s.pods != (want[1] == podsName) {
			t.Errorf("%s %s: in pods: %v", want[0], want[1], s.pods)
		}
	}
}

func TestASampleThatIsNoYAMLIsAnErrorThatNamesItsFile(t *testing.T) {
	if _, err := parseSample("bad.yaml", []byte("spec: [")); err == nil || err.Error()[:16] != "sample bad.yaml:" {
		t.Errorf("error: %v", err)
	}
}
