// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"testing"
	"time"
)

func TestEventsOfTheRuntimeAreRead(t *testing.T) {
	at := time.Date(2026, 11, 20, 16, 43, 40, 355120445, time.UTC)
	ended := time.Date(2026, 11, 20, 16, 43, 40, 355071973, time.UTC)
	for name, tc := range map[string]struct {
		line string
		want event
	}{
		"a container is made": {
			`2026-11-20 16:43:40.355120445 +0000 UTC k8s.io /containers/create {"id":"c1","image":"docker.io/a/b c:latest","runtime":{"name":"x"}}`,
			event{at, "/containers/create", eventBody{ID: "c1"}},
		},
		"its process starts": {
			`2026-11-20 16:43:40.355120445 +0000 UTC k8s.io /tasks/start {"container_id":"c1","pid":196}`,
			event{at, "/tasks/start", eventBody{ContainerID: "c1", PID: 196}},
		},
		"it ends with 0, as containerd 1.6 writes it": {
			`2026-11-20 16:43:40.355120445 +0000 UTC k8s.io /tasks/exit {"container_id":"c1","id":"c1","pid":196,"exited_at":"2026-11-20T16:43:40.355071973Z"}`,
			event{at, "/tasks/exit", eventBody{ID: "c1", ContainerID: "c1", PID: 196, ExitedAt: timestamp{ended}}},
		},
		"it is killed, as later ones write it": {
			`2026-11-20 16:43:40.355120445 +0000 UTC k8s.io /tasks/exit {"container_id":"c1","id":"c1","pid":196,"exit_status":137,"exited_at":{"seconds":1795193020,"nanos":355071973}}`,
			event{at, "/tasks/exit", eventBody{ID: "c1", ContainerID: "c1", PID: 196, ExitStatus: 137, ExitedAt: timestamp{ended}}},
		},
		"something that does not matter": {
			`2026-11-20 16:43:40.355120445 +0000 UTC k8s.io /images/create whatever`,
			event{at: at, topic: "/images/create"},
		},
		"a time without a fraction": {
			`2026-11-20 16:43:40 +0000 UTC k8s.io /images/create {}`,
			event{at: at.Truncate(time.Second), topic: "/images/create"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseEvent(tc.line)
			if err != nil {
				t.Fatal(err)
			}
			if !got.at.Equal(tc.want.at) || !got.ExitedAt.Equal(tc.want.ExitedAt.Time) {
				t.Errorf("at %s, ended at %s", got.at, got.ExitedAt)
			}
			got.at, got.ExitedAt = tc.want.at, tc.want.ExitedAt // equal times may be written in different ways
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":         "",
		"no time":         `yesterday 16:43:40 +0000 UTC k8s.io /tasks/start {"container_id":"c1"}`,
		"no body":         `2026-11-20 16:43:40 +0000 UTC k8s.io /tasks/start`,
		"a body cut off":  `2026-11-20 16:43:40 +0000 UTC k8s.io /tasks/start {"container_id":`,
		"a time as words": `2026-11-20 16:43:40 +0000 UTC k8s.io /tasks/exit {"id":"c1","exited_at":"now"}`,
	} {
		if _, err := parseEvent(line); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
