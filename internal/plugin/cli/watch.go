// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/plugin/text"
)

// again is how long a broken watch waits before it is tried again.
const again = time.Second

// ErrDeleted is the error of a wait for an object that was deleted meanwhile.
var ErrDeleted = errors.New("was deleted")

// Follow calls see with every state of the objects that the list's options select, from those of the present on, until it says that it
// is done, or fails, or the context ends. Of an object that was deleted it is told so. A connection that breaks is made again, and
// whoever waits is told once.
func (f *Factory) Follow(ctx context.Context, c client.WithWatch, list client.ObjectList, see func(object client.Object, deleted bool) (done bool, err error), opts ...client.ListOption) error {
	said := false
	for {
		done, err := round(ctx, c, list, see, opts)
		if done || final(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !said {
			f.Notef("the connection broke; trying again: %s\n", text.Line(err.Error()))
			said = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.Clock.After(again):
		}
	}
}

// seeing is an error of whoever looks at the objects, and not of the connection.
type seeing struct{ error }

// Unwrap returns the cause.
func (s seeing) Unwrap() error { return s.error }

// final says whether to try again is no use.
func final(err error) bool {
	_, theirs := errors.AsType[seeing](err)
	return theirs || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

// round lists, and watches from there until the watch ends.
func round(ctx context.Context, c client.WithWatch, list client.ObjectList, see func(client.Object, bool) (bool, error), opts []client.ListOption) (bool, error) {
	list, err := fresh(list)
	if err != nil {
		return false, seeing{err}
	}
	if err := c.List(ctx, list, opts...); err != nil {
		return false, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return false, seeing{err}
	}
	for _, item := range items {
		object, ok := item.(client.Object)
		if !ok {
			continue
		}
		if done, err := look(see, object, false); done || err != nil {
			return done, err
		}
	}
	w, err := c.Watch(ctx, list, append(opts, resume(list.GetResourceVersion()))...)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	return events(ctx, w, see)
}

func events(ctx context.Context, w watch.Interface, see func(client.Object, bool) (bool, error)) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case event, ok := <-w.ResultChan():
			if !ok || event.Type == watch.Error {
				return false, nil // the next round lists anew
			}
			object, isObject := event.Object.(client.Object)
			if !isObject || event.Type == watch.Bookmark {
				continue
			}
			if done, err := look(see, object, event.Type == watch.Deleted); done || err != nil {
				return done, err
			}
		}
	}
}

func look(see func(client.Object, bool) (bool, error), object client.Object, deleted bool) (bool, error) {
	done, err := see(object, deleted)
	if err != nil {
		return false, seeing{err}
	}
	return done, nil
}

// resume is the option of a watch to begin where a list ended.
type resume string

// ApplyToList implements client.ListOption.
func (r resume) ApplyToList(o *client.ListOptions) {
	raw := o.AsListOptions().DeepCopy()
	raw.ResourceVersion = string(r)
	o.Raw = raw
}

// Until waits until an object fulfils the condition, and reads its last state into the object, whose name and namespace say which.
// The list is an empty one of its kind. An object that is deleted meanwhile, or replaced by another of its name, is an error: ErrDeleted.
// After the timeout, unless it is 0, the error has the exit code ExitTimeout.
func Until[T client.Object](ctx context.Context, f *Factory, c client.WithWatch, object T, list client.ObjectList, timeout time.Duration, done func(T) (bool, error)) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, Timeoutf("%s was still waited for after %s", object.GetName(), timeout))
		defer cancel()
	}
	uid := object.GetUID()
	gone := fmt.Errorf("%s %w", object.GetName(), ErrDeleted)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); apierrors.IsNotFound(err) {
		return gone // Follow would never see it
	}
	return f.Follow(ctx, c, list, func(seen client.Object, deleted bool) (bool, error) {
		now, ok := seen.(T)
		if !ok || deleted && (uid == "" || seen.GetUID() == uid) || uid != "" && !deleted && seen.GetUID() != uid {
			return false, gone
		}
		if deleted {
			return false, nil
		}
		return done(now)
	}, client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()})
}

// fresh returns an empty list of the same kind: reading into one that holds something may leave some of that.
func fresh(list client.ObjectList) (client.ObjectList, error) {
	empty, ok := list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("a copy of a %T is no list", list)
	}
	return empty, nil
}
