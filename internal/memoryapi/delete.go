// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete begins or ends the life of an object that is asked to go.
func (s *Server) delete(k *kind, key types.NamespacedName, o *metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retire(k, key, o)
}

// retire is delete. The lock is held.
func (s *Server) retire(k *kind, key types.NamespacedName, o *metav1.DeleteOptions) error {
	r, err := s.retirable(k, key, o)
	if err != nil {
		return err
	}
	next := copyOf(r.object)
	graceful, pending := s.giveNotice(k, next, o)
	if pending {
		return nil
	}
	next.SetFinalizers(k.finalizers(next, o))
	if graceful {
		marked, err := s.store(k, next, r)
		if err == nil && *next.GetDeletionGracePeriodSeconds() == 0 && len(next.GetFinalizers()) == 0 {
			s.remove(k, marked)
		}
		return err
	}
	if len(next.GetFinalizers()) > 0 {
		s.markDeleted(next)
		_, err := s.store(k, next, r)
		return err
	}
	if len(r.object.GetFinalizers()) > 0 && o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
		// A quirk of the real one: having dropped the last finalizer it compares the precondition with no version at all.
		return apierrors.NewConflict(k.groupResource(), key.Name, errors.New("the precondition is compared with no version"))
	}
	s.remove(k, r)
	return nil
}

// retirable finds the object of a deletion that may be carried out.
func (s *Server) retirable(k *kind, key types.NamespacedName, o *metav1.DeleteOptions) (*record, error) {
	if k.gvk == namespaceKind {
		return nil, apierrors.NewMethodNotSupported(k.groupResource(), "delete")
	}
	r, found := s.storage[k].records[key]
	if !found {
		return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
	}
	if errs := metav1validation.ValidateDeleteOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return r, meets(k, r.object, o.Preconditions)
}

// meets checks the preconditions of a deletion.
func meets(k *kind, o client.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != o.GetUID() {
		return conflict(k, o, "UID", *p.UID, o.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
		return conflict(k, o, "resourceVersion", *p.ResourceVersion, o.GetResourceVersion())
	}
	return nil
}

func conflict(k *kind, o client.Object, what string, want, is any) error {
	return apierrors.NewConflict(schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}, o.GetName(),
		fmt.Errorf("the precondition asks for %s %v, and it is %v", what, want, is))
}

// giveNotice asks the object of a kind that ends gracefully to end. It reports whether there is a notice, and whether one
// that was given before goes on unchanged.
func (s *Server) giveNotice(k *kind, o client.Object, options *metav1.DeleteOptions) (graceful, pending bool) {
	if k.grace == nil {
		return false, false
	}
	given := o.GetDeletionGracePeriodSeconds()
	if o.GetDeletionTimestamp() == nil {
		seconds := k.grace(o, options)
		end := s.after(seconds)
		o.SetDeletionTimestamp(&end)
		o.SetDeletionGracePeriodSeconds(&seconds)
		countGeneration(o)
		return true, false
	}
	if given == nil || *given == 0 {
		return false, false
	}
	// A notice can only be shortened.
	seconds := options.GracePeriodSeconds
	if seconds == nil || *seconds >= *given {
		return false, true
	}
	end := metav1.NewTime(o.GetDeletionTimestamp().Add(time.Duration(*seconds-*given) * time.Second))
	shortened := *seconds
	if now := s.time(); end.Before(&now) {
		end = now
		if shortened != 0 {
			shortened = 1
		}
	}
	o.SetDeletionTimestamp(&end)
	o.SetDeletionGracePeriodSeconds(&shortened)
	return true, false
}

// after is a time from now as objects have it.
func (s *Server) after(seconds int64) metav1.Time {
	return metav1.NewTime(s.now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second).Local())
}

func countGeneration(o client.Object) {
	if g := o.GetGeneration(); g > 0 {
		o.SetGeneration(g + 1)
	}
}

// markDeleted says of an object that finalizers keep that it is to go.
func (s *Server) markDeleted(o client.Object) {
	now := s.time()
	if t := o.GetDeletionTimestamp(); t == nil {
		countGeneration(o)
		o.SetDeletionTimestamp(&now)
	} else if t.After(now.Time) {
		o.SetDeletionTimestamp(&now)
	}
	o.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
}

// finalizers are those of an object from its deletion on: its own, and the one that tells the garbage collector what to do
// with what the object owns.
func (k *kind) finalizers(o client.Object, options *metav1.DeleteOptions) []string {
	if k.ungathered {
		return o.GetFinalizers()
	}
	has := func(f string) bool { return slices.Contains(o.GetFinalizers(), f) }
	orphan, foreground := k.orphans, false
	if has(metav1.FinalizerOrphanDependents) {
		orphan = true
	} else if has(metav1.FinalizerDeleteDependents) {
		orphan, foreground = false, true
	}
	if p := options.PropagationPolicy; p != nil {
		orphan, foreground = *p == metav1.DeletePropagationOrphan, *p == metav1.DeletePropagationForeground
	}
	var all []string
	for _, f := range o.GetFinalizers() {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			all = append(all, f)
		}
	}
	if orphan {
		all = append(all, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		all = append(all, metav1.FinalizerDeleteDependents)
	}
	return all
}
