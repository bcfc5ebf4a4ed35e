// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

const (
	// DefaultNode is the name of the node where Options names none.
	DefaultNode = "fake-node"
	// labelFake marks the Nodes of this package.
	labelFake = "fakekubelet/node"
	// workers is how many pods are served at once.
	workers = 8
	// leastRetry and mostRetry bound the pause before a write is tried again that the API server did not take: what waits
	// for one that was gone for a while goes on soon after it is back.
	leastRetry = 5 * time.Millisecond
	mostRetry  = time.Second
)

// Options of a fake kubelet.
type Options struct {
	// NodeName of the Node that it makes, if it is missing, and plays. Default: DefaultNode.
	NodeName string
}

// Kubelet is a running fake kubelet. Its methods may be called from several goroutines.
type Kubelet struct {
	node   string
	client kubernetes.Interface
	pods   corelisters.PodLister
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	stop   func()

	mu      sync.Mutex
	held    map[string]bool
	lives   map[types.UID]*life
	history []Event
}

// life is what is remembered of a pod.
type life struct {
	started time.Time
	ended   bool
}

// Start makes a Node and serves every pod of the cluster until Stop. ctx bounds the starting only. It refuses a cluster
// that has a Node of its own: that one has real kubelets.
func Start(ctx context.Context, config *rest.Config, o Options) (*Kubelet, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if o.NodeName == "" {
		o.NodeName = DefaultNode
	}
	if err := ensureNode(ctx, client, o.NodeName); err != nil {
		return nil, err
	}
	k := &Kubelet{
		node:   o.NodeName,
		client: client,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](leastRetry, mostRetry)),
		held:   map[string]bool{},
		lives:  map[types.UID]*life{},
	}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

func ensureNode(ctx context.Context, client kubernetes.Interface, name string) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "!" + labelFake})
	if err != nil {
		return err
	}
	if len(nodes.Items) > 0 {
		return fmt.Errorf("the cluster has a node of its own, %s: a fake kubelet would take its pods", nodes.Items[0].Name)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelFake: ""}}}
	_, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (k *Kubelet) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(k.client, 0)
	pods := factory.Core().V1().Pods()
	k.pods = pods.Lister()
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.enqueue,
		UpdateFunc: func(_, obj any) { k.enqueue(obj) },
		DeleteFunc: k.gone,
	}); err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	k.stop = func() {
		cancel()
		k.queue.ShutDown()
		wg.Wait()
		factory.Shutdown()
	}
	factory.Start(running.Done())
	for range workers {
		wg.Go(func() { k.work(running) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		k.stop()
		return errors.New("the pods of the cluster could not be listed in time")
	}
	return nil
}

// Stop ends the kubelet: from then on its pods stay as they are, as on a node that was lost. The Node object stays. It
// may be called more than once.
func (k *Kubelet) Stop() { k.stop() }

// NodeName returns the name of the node that this kubelet plays.
func (k *Kubelet) NodeName() string { return k.node }

func (k *Kubelet) enqueue(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok {
		k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

// gone records the end of a pod that was removed by force.
func (k *Kubelet) gone(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if ok && !k.startOf(pod).IsZero() {
		k.record(Ended, pod, time.Now())
	}
}

func (k *Kubelet) work(ctx context.Context) {
	for {
		key, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		k.handle(ctx, key)
		k.queue.Done(key)
	}
}

func (k *Kubelet) handle(ctx context.Context, key types.NamespacedName) {
	after, err := k.serve(ctx, key)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		k.queue.Forget(key) // the pod has changed; its event brings it back
	case err != nil:
		k.queue.AddRateLimited(key)
	default:
		k.queue.Forget(key)
		if after > 0 {
			k.queue.AddAfter(key, after)
		}
	}
}

func (k *Kubelet) serve(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	cached, err := k.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil {
		return 0, err
	}
	pod := cached.DeepCopy()
	b, err := behaviourOf(pod)
	if err != nil {
		b = behaviour{waiting: "CreateContainerConfigError"} // so that the test sees what it did
	}
	now := time.Now()
	next, after := nextStep(pod, b, k.node, k.isHeld(pod.Namespace), k.startOf(pod), now)
	return after, k.do(ctx, pod, next, b, now)
}

func (k *Kubelet) do(ctx context.Context, pod *corev1.Pod, next step, b behaviour, now time.Time) error {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	switch next {
	case stepBind:
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: k.node},
		}, metav1.CreateOptions{})
	case stepWait:
		setWaiting(pod, b.waiting)
		return k.writeStatus(ctx, pod)
	case stepRun:
		k.record(Started, pod, now)
		setRunning(pod, now)
		return k.writeStatus(ctx, pod)
	case stepEnd:
		return k.end(ctx, pod, exitsBy(b), now)
	case stepKill:
		if err := k.end(ctx, pod, exitsKilled, now); err != nil {
			return err
		}
		return k.remove(ctx, pod)
	case stepRemove:
		return k.remove(ctx, pod)
	default:
		return nil
	}
}

func (k *Kubelet) end(ctx context.Context, pod *corev1.Pod, exit func(string) (int32, string), now time.Time) error {
	started := k.startOf(pod)
	if started.IsZero() {
		started = now
	} else {
		k.record(Ended, pod, now)
	}
	setEnded(pod, exit, started, now)
	return k.writeStatus(ctx, pod)
}

func (k *Kubelet) writeStatus(ctx context.Context, pod *corev1.Pod) error {
	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
}
