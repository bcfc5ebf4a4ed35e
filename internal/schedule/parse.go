// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known in an image that has no zone database

	"github.com/robfig/cron/v3"
)

const everyPrefix = "@every "

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads a five-field cron expression (minute, hour, day of month, month, day of week) or a descriptor (@hourly,
// @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every <duration>).
//
// zone is a name of the IANA time zone database; "" is UTC. anchor is when the ScheduledJob was created and matters to
// @every alone. The error is meant for the person who wrote the expression: it has the parser's words and, where there
// is one, a way out. Parse never panics.
func Parse(expr, zone string, anchor time.Time) (Schedule, error) {
	location, err := loadZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	ticks, err := parseTicks(strings.TrimSpace(expr), location, anchor)
	if err != nil {
		return Schedule{}, fmt.Errorf("invalid schedule %q: %w", expr, err)
	}
	return Schedule{ticks: ticks}, nil
}

func parseTicks(expr string, zone *time.Location, anchor time.Time) (ticker, error) {
	if strings.Contains(strings.ToUpper(expr), "TZ=") {
		return nil, errors.New("a time zone in the expression is not supported: set spec.timeZone instead")
	}
	if interval, ok := strings.CutPrefix(expr, everyPrefix); ok {
		return parseEvery(interval, anchor)
	}
	spec, err := guardedParse(expr)
	if err != nil {
		return nil, advise(expr, err)
	}
	if spec.Minute == 0 || spec.Hour == 0 || spec.Dom == 0 || spec.Month == 0 || spec.Dow == 0 {
		return nil, errors.New("a field is an empty list, so this never fires")
	}
	calendar := newCalendar(spec)
	if !calendar.everMatches() {
		return nil, errors.New("there is no such date, so this never fires: check day of month and month")
	}
	return cronTicks{calendar: calendar, zone: zone}, nil
}

// parseEvery reads the interval itself: the library rounds it without a word.
func parseEvery(interval string, anchor time.Time) (ticker, error) {
	d, err := time.ParseDuration(interval)
	if err != nil {
		return nil, advise(everyPrefix+interval, err)
	}
	return newEvery(d, anchor)
}

// guardedParse turns a panic of the library into an error: one bad object must not take the manager down.
func guardedParse(expr string) (spec *cron.SpecSchedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			spec, err = nil, fmt.Errorf("the parser cannot read it: %v", r)
		}
	}()
	parsed, err := parser.Parse(expr)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("it is no calendar expression")
	}
	return spec, nil
}

// advise adds to the parser's words what to write instead, for the mistakes that other crons allow.
func advise(expr string, err error) error {
	fields := strings.Fields(expr)
	switch {
	case strings.HasPrefix(expr, "@every"):
		return fmt.Errorf("%w: write for example @every 90s or @every 1h30m", err)
	case strings.HasPrefix(expr, "@"):
		return fmt.Errorf("%w: use @hourly, @daily, @weekly, @monthly, @yearly or @every <duration>", err)
	case len(fields) != 5:
		return fmt.Errorf("%w: write minute, hour, day of month, month and day of week; seconds and years are not supported", err)
	case strings.Contains(err.Error(), "(7) above maximum (6)"):
		return fmt.Errorf("%w: Sunday is 0", err)
	}
	return err
}

// loadZone refuses the names that mean "the zone of this machine", which differs between machines.
func loadZone(zone string) (*time.Location, error) {
	if strings.EqualFold(zone, "local") || strings.EqualFold(zone, "localtime") {
		return nil, fmt.Errorf("time zone %q is not supported: name the zone, such as Europe/London", zone)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		// The library's own words may show a path of the machine.
		return nil, fmt.Errorf("unknown time zone %q: use a name of the IANA database, such as Europe/London", zone)
	}
	return location, nil
}
