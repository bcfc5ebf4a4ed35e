// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestBadSchedulesAreRefusedWithAWayOut(t *testing.T) {
	for name, c := range map[string]struct{ expr, zone, want string }{
		"an empty expression":                 {"", "", "empty"},
		"only blanks":                         {"  \t ", "", "empty"},
		"too few fields":                      {"* * *", "", "expected exactly 5 fields, found 3"},
		"a field for seconds":                 {"0 * * * * *", "", "seconds and years are not supported"},
		"a value above its range":             {"61 * * * *", "", "above maximum (59)"},
		"a negative value":                    {"-1 * * * *", "", "failed to parse"},
		"a word":                              {"a b c d e", "", "failed to parse int from a"},
		"a range the wrong way round":         {"5-1 * * * *", "", "beyond end of range"},
		"a step of zero":                      {"*/0 * * * *", "", "step of range"},
		"an absurd number":                    {"99999999999999999999 * * * *", "", "failed to parse int"},
		"Sunday written as 7":                 {"0 0 * * 7", "", "Sunday is 0"},
		"an empty list in a field":            {", * * * *", "", "empty list"},
		"a zone in the expression":            {"TZ=Europe/London 0 3 * * *", "", "spec.timeZone"},
		"an empty zone in the expression":     {"TZ= 0 3 * * *", "", "spec.timeZone"},
		"a zone and nothing else":             {"TZ=0", "", "spec.timeZone"},
		"a zone as cron's own variable":       {"CRON_TZ=UTC", "", "spec.timeZone"},
		"a zone in small letters":             {"  cron_tz=UTC 0 3 * * *", "", "spec.timeZone"},
		"a date that does not exist":          {"0 0 30 2 *", "", "never fires"},
		"31st of months with 30 days":         {"0 0 31 4,6,9,11 *", "", "never fires"},
		"an unknown descriptor":               {"@reboot", "", "use @hourly"},
		"a word as interval":                  {"@every day", "", "write for example @every 90s"},
		"a negative interval":                 {"@every -1h", "", "at least 1s"},
		"an interval of nothing":              {"@every 0s", "", "at least 1s"},
		"half a second":                       {"@every 500ms", "", "at least 1s"},
		"a fraction of a second":              {"@every 1500ms", "", "whole number of seconds"},
		"an interval without a unit":          {"@every 90", "", "write for example @every 90s"},
		"no interval":                         {"@every", "", "write for example @every 90s"},
		"an interval beyond all measure":      {"@every 99999999h", "", "write for example @every 90s"},
		"an unknown zone":                     {"@daily", "Europe/Atlantis", `unknown time zone "Europe/Atlantis"`},
		"a folder of zones":                   {"@daily", "America", `unknown time zone "America"`},
		"a path as zone":                      {"@daily", "../../etc/passwd", "unknown time zone"},
		"an offset as zone":                   {"@daily", "+02:00", `unknown time zone "+02:00"`},
		"the zone of whatever machine it is":  {"@daily", "Local", "name the zone"},
		"the same by the name of its file":    {"@daily", "localtime", "name the zone"},
		"an unknown zone where none matters":  {"@every 5s", "Nowhere", "unknown time zone"},
		"a zone with a blank before it":       {"@daily", " UTC", "unknown time zone"},
		"a character that is no number":       {"٣ * * * *", "", "failed to parse int"},
		"a value below its range":             {"0 0 0 * *", "", "below minimum (1)"},
		"two slashes":                         {"*/5/5 * * * *", "", "too many slashes"},
		"two hyphens":                         {"1-2-3 * * * *", "", "too many hyphens"},
		"a step that is no number":            {"*/x * * * *", "", "failed to parse int"},
		"the last day of a month, from other": {"0 0 L * *", "", "failed to parse int from L"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, err := Parse(c.expr, c.zone, time.Time{})
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			_, ok := s.Next(time.Unix(0, 0))
			g.Expect(ok).To(BeFalse(), "what is refused must not fire")
		})
	}
}

func TestAnErrorNamesWhatWasWritten(t *testing.T) {
	g := NewWithT(t)
	_, err := Parse("61 * * * *", "", time.Time{})
	g.Expect(err).To(MatchError("invalid schedule \"61 * * * *\": end of range (61) above maximum (59): 61"))
}

func TestAPanicOfTheLibraryIsAnError(t *testing.T) {
	g := NewWithT(t)
	_, err := guardedParse("TZ=0")
	g.Expect(err).To(MatchError(ContainSubstring("cannot read")))
}

func TestTheLibraryIsNotTrustedWithAnInterval(t *testing.T) {
	g := NewWithT(t)
	_, err := guardedParse("@every 500ms")
	g.Expect(err).To(MatchError("it is no calendar expression"))
}

func TestBlanksAroundAnExpressionDoNoHarm(t *testing.T) {
	g := NewWithT(t)
	next, ok := mustParse(t, " 0  3\t* * * \n", "", time.Time{}).Next(time.Unix(0, 0))
	g.Expect(ok).To(BeTrue())
	g.Expect(next.Unix()).To(Equal(int64(3 * hour)))
	next, ok = mustParse(t, " @every 90s ", "", time.Unix(0, 0)).Next(time.Unix(0, 0))
	g.Expect(ok).To(BeTrue())
	g.Expect(next.Unix()).To(Equal(int64(90)))
}

func TestTheZoneSaysWhenADayBegins(t *testing.T) {
	for zone, want := range map[string]string{
		"":                 "2026-07-02T00:00:00Z",
		"UTC":              "2026-07-02T00:00:00Z",
		"Europe/London":    "2026-07-01T23:00:00Z",
		"Asia/Kathmandu":   "2026-07-01T18:15:00Z",
		"America/New_York": "2026-07-02T04:00:00Z",
		"Etc/GMT+12":       "2026-07-02T12:00:00Z",
	} {
		t.Run(zone, func(t *testing.T) {
			g := NewWithT(t)
			next, ok := mustParse(t, "@daily", zone, time.Time{}).Next(mustTime(t, "2026-07-01T12:00:00Z"))
			g.Expect(ok).To(BeTrue())
			g.Expect(next.Format(time.RFC3339)).To(Equal(want))
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, expr := range []string{
		"* * * * *", "*/10 2-4,7 29 2 */3", "@every 1h30m", "@every -1h", "@hourly", "TZ=0", "TZ=", "CRON_TZ=UTC",
		", * * * *", "0 0 30 2 *", "? ? ? ? ?", "*/9223372036854775807 * * * *", "@", "@every", "0-59/61 * * jan sun",
	} {
		f.Add(expr, "America/New_York", int64(1772953200))
		f.Add(expr, "", int64(-1<<62))
		f.Add(expr, "Australia/Lord_Howe", int64(1<<62))
	}
	f.Fuzz(func(t *testing.T, expr, zone string, at int64) {
		now := time.Unix(at, 0)
		s, err := Parse(expr, zone, now)
		if err != nil {
			return
		}
		next, ok := s.Next(now)
		if !ok {
			return
		}
		if !next.After(now) {
			t.Fatalf("%q in %q: the tick after %v is %v", expr, zone, now, next)
		}
		from := next.Add(-time.Second)
		if n := s.Count(from, next); n != 1 {
			t.Fatalf("%q in %q: %d ticks at %v", expr, zone, n, next)
		}
		if latest, ok := s.Latest(from, next); !ok || !latest.Equal(next) {
			t.Fatalf("%q in %q: the latest at %v is %v", expr, zone, next, latest)
		}
	})
}
