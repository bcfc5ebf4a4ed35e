// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/survey"
	"reprise.dev/reprise/internal/plugin/text"
)

const (
	// refresh is how often a terminal is drawn over though nothing has changed, for the times that it shows.
	refresh = time.Second
	// calm is how long changes are gathered before they are shown.
	calm = 200 * time.Millisecond
)

// What a terminal understands.
const (
	enter   = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leave   = "\x1b[?25h\x1b[?1049l"
	home    = "\x1b[H"
	clearTo = "\x1b[K" // the end of the line
	clearDn = "\x1b[J" // the end of the screen
)

// watchQueues shows queues until the context ends.
func watchQueues(ctx context.Context, f *cli.Factory, want asked, output *cli.Output) error {
	c, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	live, err := survey.Watch(ctx, c, namespace, f.Clock)
	if err != nil {
		return err
	}
	snapshot, _ := live.Snapshot()
	if _, ok := viewsOf(explain.New(snapshot, f.Now()), want); !ok {
		return cli.Get(ctx, c, namespace, want.queue, &batchv1alpha1.JobQueue{})
	}
	switch {
	case !output.Human():
		return each(ctx, f, live, 0, documents(f, want, output))
	case f.Terminal:
		f.Printf("%s", enter)
		defer f.Printf("%s", leave)
		return each(ctx, f, live, refresh, screen(f, want))
	default:
		return each(ctx, f, live, 0, journal(f, want))
	}
}

// show shows what there is, and if there is trouble that it may be out of date.
type show func(s explain.Snapshot, trouble error) error

// each shows every state, and shows it again after a while, if that is not 0, until the context ends.
func each(ctx context.Context, f *cli.Factory, live *survey.Live, again time.Duration, show show) error {
	for {
		if err := show(live.Snapshot()); err != nil {
			return err
		}
		var tick <-chan time.Time
		if again > 0 {
			tick = f.Clock.After(again)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick:
		case <-live.Changed():
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-f.Clock.After(calm):
			}
		}
	}
}

// present returns the views of a snapshot. A queue that has vanished is shown as one that does not exist.
func present(s explain.Snapshot, want asked, now time.Time) []explain.QueueView {
	views, ok := viewsOf(explain.New(s, now), want)
	if !ok {
		return []explain.QueueView{{Namespace: s.Namespace, Name: want.queue}}
	}
	return views
}

// screen draws over a terminal.
func screen(f *cli.Factory, want asked) show {
	return func(s explain.Snapshot, trouble error) error {
		now := f.Now()
		about := fmt.Sprintf("namespace %s   %s   Ctrl-C ends it", s.Namespace, now.Format(time.TimeOnly))
		lines := append(single(f.Style(), 0, text.Cell{Text: about, Colour: text.Dim}), "")
		if trouble != nil {
			lines = append(lines[:1], single(f.Style(), 0, text.Cell{Text: "this may be out of date: " + trouble.Error(), Colour: text.Red})...)
		}
		lines = append(lines, drawQueues(present(s, want, now), s.Unread, want, now, f.Style())...)
		_, rows := f.Size()
		f.Printf("%s", frame(lines, rows))
		return nil
	}
}

// frame returns what draws lines over a screen of so many rows.
func frame(lines []string, rows int) string {
	if len(lines) > rows {
		lines = append(slices.Clone(lines[:max(rows-1, 0)]), fmt.Sprintf("… %d more lines", len(lines)-rows+1))
	}
	return home + strings.Join(lines, clearTo+"\r\n") + clearTo + clearDn
}

// journal writes a line for each change.
func journal(f *cli.Factory, want asked) show {
	var before map[string]string
	warned := false
	return func(s explain.Snapshot, trouble error) error {
		if trouble != nil && !warned {
			f.Notef("this may be out of date: %s\n", text.Line(trouble.Error()))
		}
		warned = trouble != nil
		now := f.Now()
		after := states(present(s, want, now))
		for _, line := range changes(before, after) {
			f.Printf("%s %s\n", now.UTC().Format(time.RFC3339), line)
		}
		before = after
		return nil
	}
}

// documents writes everything anew at each change.
func documents(f *cli.Factory, want asked, output *cli.Output) show {
	var before map[string]string
	return func(s explain.Snapshot, _ error) error {
		views := present(s, want, f.Now())
		after := states(views)
		if before != nil && maps.Equal(before, after) {
			return nil
		}
		before = after
		return output.Value(f, document(views, want))
	}
}

// states tells of everything in the queues where it stands, in a few words: what changes with the time alone is not in them.
func states(views []explain.QueueView) map[string]string {
	all := map[string]string{}
	for _, v := range views {
		for _, a := range v.Slots {
			all[key(v, a)] = said(a)
		}
		for _, a := range v.Waiting {
			all[key(v, a)] = said(a)
		}
	}
	return all
}

func key(v explain.QueueView, a explain.Answer) string { return "jq/" + v.Name + " " + nameOf(a) }

func said(a explain.Answer) string {
	if a.Reason == a.Phase || a.Reason == "" {
		return a.Phase
	}
	return a.Phase + " " + a.Reason
}

// changes tells what differs, a line each: what is new or has changed and where it stands now, then what is no longer there.
func changes(before, after map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			lines = append(lines, text.Line(name+" "+after[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			lines = append(lines, text.Line(name+" gone"))
		}
	}
	return lines
}
