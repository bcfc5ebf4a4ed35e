// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/schedule"
)

const (
	// collisions is how many foreign objects are passed over under the names of a tick's product before it is given up for now.
	collisions = 5
	// nameLimit is the longest name of a run, and of a group.
	nameLimit = 57
)

// errNamesTaken says that foreign objects have all the names that the product of a tick could have.
var errNamesTaken = errors.New("other objects have its name, and those it would take instead")

// fired is what a pass has fired.
type fired struct {
	// made by the ticks, in their order.
	made []fire
	// foreign counts the objects that were found in their way.
	foreign int32
	// failure of the first tick that could not make anything; those behind it were not tried.
	failure error
}

// fire is a tick, and what it has made.
type fire struct {
	tick schedule.Tick
	made product
	// anew says that it was not there before.
	anew bool
}

// fire makes sure that every tick that is to fire has made its product, in their order, up to the first that cannot.
func (s *scope) fire(ctx context.Context) fired {
	var f fired
	for _, tick := range s.plan.decision.Fire {
		made, foreign, err := s.ensure(ctx, tick.Time)
		if err != nil {
			f.failure = err
			break
		}
		made.tick = tick
		s.unrecorded.add(client.ObjectKeyFromObject(s.sj), made.made.entry())
		f.foreign += foreign
		f.made = append(f.made, made)
	}
	return f
}

// ensure returns what a tick has made, now or earlier, by whomever, and how many foreign objects are in its way.
func (s *scope) ensure(ctx context.Context, tick time.Time) (fire, int32, error) {
	var kind string
	for n := range int32(collisions + 1) {
		object := newObject(s.sj, tick, n)
		kind = productOf(object).kind
		err := s.Client.Create(ctx, object)
		if err == nil {
			return fire{made: productOf(object), anew: true}, n, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fire{}, 0, fmt.Errorf("%s %s could not be created: %w", kind, object.GetName(), err)
		}
		there := blank(object)
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
			return fire{}, 0, fmt.Errorf("reading %s %s, which exists already: %w", kind, object.GetName(), err)
		}
		switch existing := productOf(there); {
		case !existing.isFireOf(s.sj, tick):
		case existing.leaving(s.sj):
			return fire{}, 0, fmt.Errorf("%s %s belongs to an earlier ScheduledJob %s and is to be deleted with it; the tick waits for that", kind, object.GetName(), s.sj.Name)
		default:
			return fire{made: existing}, n, nil
		}
	}
	return fire{}, 0, fmt.Errorf("%s %s could not be created: %w", kind, schedule.RunName(s.sj.Name, tick), errNamesTaken)
}

// productName returns the name of what a tick makes when that many foreign objects have the names before it.
func productName(sj string, tick time.Time, collision int32) string {
	if collision == 0 {
		return schedule.RunName(sj, tick)
	}
	suffix := fmt.Sprintf("-%d-%d", tick.Unix(), collision)
	if room := nameLimit - len(suffix); len(sj) > room {
		sj = strings.TrimRight(sj[:room], "-.")
	}
	return sj + suffix
}

func isProductName(name, sj string, tick time.Time) bool {
	for n := range int32(collisions + 1) {
		if name == productName(sj, tick, n) {
			return true
		}
	}
	return false
}

// rejected reports whether the API server refused a run or group for what it is, so that trying again soon will not help: a quota,
// an admission rule, a name that is taken.
func rejected(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || errors.Is(err, errNamesTaken)
}
