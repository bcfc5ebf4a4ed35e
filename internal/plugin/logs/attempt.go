// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/run"
)

// linger is how long the logs of a run that has ended are waited for: a node that is lost never ends them.
const linger = 10 * time.Second

// stream is the log of a container.
type stream = io.ReadCloser

// opener begins to read the log of a container.
type opener func(ctx context.Context, pod, container string, follow bool) (stream, error)

// attempt prints one run.
func (p *printer) attempt(ctx context.Context, r *batchv1alpha1.JobRun, follow bool) error {
	if follow {
		started, err := p.started(ctx, r)
		if err != nil {
			return err
		}
		r = started
	}
	t := run.Template(r)
	switch {
	case r.Status.StartedAt == nil:
		return p.unstarted(r)
	case t != nil && t.Work != nil && t.Work.HTTP != nil:
		return p.call(ctx, r, follow)
	case follow:
		return p.follow(ctx, r)
	default:
		return p.print(ctx, r)
	}
}

// started waits until a run was started, or has ended without that.
func (p *printer) started(ctx context.Context, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	if r.Status.Phase == batchv1alpha1.JobRunQueued {
		p.f.Notef("run %s waits; see: kubectl reprise why %s\n", r.Name, r.Name)
	}
	last := r
	err := cli.Until(ctx, p.f, p.api, r.DeepCopy(), &batchv1alpha1.JobRunList{}, 0, func(now *batchv1alpha1.JobRun) (bool, error) {
		last = now
		return now.Status.Phase != batchv1alpha1.JobRunQueued, nil
	})
	return last, err
}

// unstarted says why there is nothing to print.
func (p *printer) unstarted(r *batchv1alpha1.JobRun) error {
	if r.Status.Phase.Terminal() {
		p.f.Notef("run %s was never started: %s\n", r.Name, said(r))
	} else {
		p.f.Notef("run %s has not started; see: kubectl reprise why %s\n", r.Name, r.Name)
	}
	return nil
}

func said(r *batchv1alpha1.JobRun) string {
	return strings.TrimSpace(fmt.Sprintf("it is %s (%s) %s", r.Status.Phase, cmp.Or(r.Status.Reason, "no reason"), text.Line(r.Status.Message)))
}

// call prints the recorded answer of HTTP work.
func (p *printer) call(ctx context.Context, r *batchv1alpha1.JobRun, follow bool) error {
	if follow && !r.Status.Phase.Terminal() {
		ended, err := p.end(ctx, r)
		if err != nil {
			return err
		}
		r = ended
	}
	result := r.Status.Result
	switch {
	case !r.Status.Phase.Terminal():
		p.f.Notef("run %s: the call is under way\n", r.Name)
		return nil
	case result == nil || result.HTTPStatus == nil:
		p.f.Notef("run %s has no answer: %s\n", r.Name, said(r))
		return nil
	}
	part := ""
	if result.BodyTruncated {
		part = fmt.Sprintf(", the first %d bytes of the answer", len(result.Body))
	}
	p.f.Notef("run %s: HTTP %d%s\n", r.Name, *result.HTTPStatus, part)
	return p.lines.copy(p.prefix(r, nil, ""), strings.NewReader(result.Body))
}

// source is a container of a pod.
type source struct {
	pod       *corev1.Pod
	container string
}

// sources are the containers of a pod that have begun, in their order.
func (p *printer) sources(pod *corev1.Pod) []source {
	var all []source
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if (s.State.Running != nil || s.State.Terminated != nil) && (p.options.container == "" || p.options.container == s.Name) {
			all = append(all, source{pod, s.Name})
		}
	}
	return all
}

// prefix is what the lines of a source begin with.
func (p *printer) prefix(r *batchv1alpha1.JobRun, pod *corev1.Pod, container string) string {
	var parts []string
	if pod != nil && parallel(r) {
		parts = append(parts, pod.Name)
	}
	if pod != nil && len(pod.Spec.InitContainers)+len(pod.Spec.Containers) > 1 && p.options.container == "" {
		parts = append(parts, container)
	}
	wanted := p.many || len(parts) > 0
	if p.options.prefix != nil {
		wanted = *p.options.prefix
	}
	if !wanted {
		return ""
	}
	return p.f.Style().Paint(text.Cyan, "["+strings.Join(append([]string{r.Name}, parts...), "/")+"]") + " "
}

// parallel says whether the Job of a run has several pods.
func parallel(r *batchv1alpha1.JobRun) bool {
	t := run.Template(r)
	if t == nil || t.Work == nil || t.Work.Job == nil {
		return false
	}
	spec := t.Work.Job.Template.Spec
	return spec.Parallelism != nil && *spec.Parallelism > 1 || spec.Completions != nil && *spec.Completions > 1
}

// pods are those of a run, in the order of their creation.
func (p *printer) pods(ctx context.Context, r *batchv1alpha1.JobRun) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := p.api.List(ctx, list, p.of(r)...); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

func (p *printer) of(r *batchv1alpha1.JobRun) []client.ListOption {
	return []client.ListOption{client.InNamespace(p.namespace), client.MatchingLabels{batchv1alpha1.LabelRunUID: string(r.UID)}}
}

// print prints what the pods of a run have written so far.
func (p *printer) print(ctx context.Context, r *batchv1alpha1.JobRun) error {
	pods, err := p.pods(ctx, r)
	if err != nil {
		return err
	}
	var sources []source
	for i := range pods {
		sources = append(sources, p.sources(&pods[i])...)
	}
	if len(sources) == 0 {
		return p.silent(r, len(pods))
	}
	for _, s := range sources {
		if err := p.read(ctx, r, s, false); err != nil {
			return err
		}
	}
	return nil
}

// silent says why a run that was started has no logs.
func (p *printer) silent(r *batchv1alpha1.JobRun, pods int) error {
	switch {
	case p.options.container != "" && pods > 0:
		return fmt.Errorf("no container of it is called %s, or it has not begun", p.options.container)
	case !r.Status.Phase.Terminal():
		p.f.Notef("run %s: no container has begun; see: kubectl reprise why %s\n", r.Name, r.Name)
	default:
		p.f.Notef("run %s has no pods any more, and its logs went with them: %s\n", r.Name, said(r))
	}
	return nil
}

func (p *printer) read(ctx context.Context, r *batchv1alpha1.JobRun, s source, follow bool) error {
	log, err := p.open(ctx, s.pod.Name, s.container, follow)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	return p.lines.copy(p.prefix(r, s.pod, s.container), log)
}

// follower prints the containers of a run as they begin, each once.
type follower struct {
	*printer
	run  *batchv1alpha1.JobRun
	read sync.WaitGroup
	mu   sync.Mutex
	seen map[types.NamespacedName]bool // by pod and container
}

// follow prints the logs of a run's pods as they come, until it has ended and they have.
func (p *printer) follow(ctx context.Context, r *batchv1alpha1.JobRun) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &follower{printer: p, run: r, seen: map[types.NamespacedName]bool{}}
	watching := make(chan error, 1)
	go func() {
		watching <- p.f.Follow(ctx, p.api, &corev1.PodList{}, func(o client.Object, _ bool) (bool, error) {
			if pod, ok := o.(*corev1.Pod); ok {
				w.begin(ctx, pod)
			}
			return false, nil
		}, p.of(r)...)
	}()
	ended := make(chan error, 1)
	go func() {
		_, err := p.end(ctx, r)
		ended <- err
	}()
	select {
	case err := <-watching: // pods may not be read
		return err
	case err := <-ended:
		if err != nil {
			return err
		}
	}
	pods, err := p.pods(ctx, r) // what the watch has not seen
	if err != nil {
		return err
	}
	for i := range pods {
		w.begin(ctx, &pods[i])
	}
	return w.rest(ctx)
}

// begin prints those containers of a pod that have begun since it was last looked at.
func (w *follower) begin(ctx context.Context, pod *corev1.Pod) {
	for _, s := range w.sources(pod) {
		key := types.NamespacedName{Namespace: string(pod.UID), Name: s.container}
		w.mu.Lock()
		known := w.seen[key]
		w.seen[key] = true
		w.mu.Unlock()
		if known {
			continue
		}
		w.read.Go(func() {
			if err := w.printer.read(ctx, w.run, s, true); err != nil && ctx.Err() == nil {
				w.f.Notef("run %s: %s\n", w.run.Name, text.Line(w.f.Explain(err)))
			}
		})
	}
}

// rest waits until everything is printed.
func (w *follower) rest(ctx context.Context) error {
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		w.read.Wait()
	}()
	select {
	case <-printed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.f.Clock.After(linger):
		w.f.Notef("run %s has ended, but its logs do not; the node may be lost\n", w.run.Name)
		return nil
	}
}
