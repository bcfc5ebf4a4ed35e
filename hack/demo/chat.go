// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	chatSample = "more/13-queue-direct.yaml"
	chatName   = "chat" // the queue of the sample, with one "ollama" that everything here claims
	chatUser   = "ada"
	audience   = "reprise"
	pages      = 3
)

// makeCertificate puts a certificate for this machine where the manager looks for it, and returns what trusts it.
func makeCertificate(dir string) (*x509.CertPool, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificate) {
		return nil, errors.New("the certificate that was made is none")
	}
	return pool, errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600),
	)
}

// chatted: people who ask over HTTP come between the run at work and those that wait.
func (s *story) chatted(ctx context.Context) error {
	s.say.step("Two people chat over HTTP, between queued runs")
	token, err := s.setTable(ctx)
	if err != nil {
		return err
	}
	for n := range pages {
		if err := s.client.Create(ctx, s.newPage(n+1)); err != nil {
			return err
		}
	}
	err = s.await(ctx, "page-1 is at work", func(context.Context) (string, error) {
		log, err := s.server.log.entries()
		return unless(len(log.chat()) == 1, "the server has %d calls", len(log.chat())), err
	})
	if err != nil {
		return err
	}
	heard := make([]time.Time, 2) // when each has the first word
	people, ctx := errgroup.WithContext(ctx)
	for i := range heard {
		people.Go(func() (err error) {
			heard[i], err = s.ask(ctx, token)
			return err
		})
	}
	err = s.await(ctx, "both are in line", func(ctx context.Context) (string, error) {
		found, err := s.reservations(ctx)
		return unless(len(found) == len(heard), "%d are", len(found)), err
	})
	s.server.page.letGo()
	if err := errors.Join(err, people.Wait()); err != nil {
		return err
	}
	return s.chatOrder(context.WithoutCancel(ctx), heard)
}

// setTable makes the queue of the sample and a user who may reserve, and returns the user's token.
func (s *story) setTable(ctx context.Context) (string, error) {
	data, err := os.ReadFile(filepath.Join(s.root, "config", "samples", chatSample))
	if err != nil {
		return "", err
	}
	queue, err := parseSample(chatSample, data)
	if err != nil {
		return "", err
	}
	if err := s.apply(ctx, []sample{queue}); err != nil {
		return "", err
	}
	named := metav1.ObjectMeta{Namespace: s.ns, Name: chatUser}
	user := &corev1.ServiceAccount{ObjectMeta: named}
	for _, o := range []client.Object{
		user,
		&rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{batchv1alpha1.GroupVersion.Group}, Resources: []string{"directreservations"}, Verbs: []string{"create"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: chatUser},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: chatUser}},
		},
	} {
		if err := s.client.Create(ctx, o); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	s.say.command("create token "+chatUser, "--audience="+audience)
	err = s.client.SubResource("token").Create(ctx, user, request)
	return request.Status.Token, err
}

// newPage is a run that needs what the people need.
func (s *story) newPage(n int) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: fmt.Sprintf("page-%d", n)}}
	r.Spec.Queue, r.Spec.Type = chatName, "batch"
	r.Spec.Claims = []batchv1alpha1.ResourceClaim{{Name: "ollama", Count: 1}}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://" + s.server.address() + pagePath}}
	return r
}

// ask sends a direct request and reads the answer as it comes. It returns when the first word was there.
func (s *story) ask(ctx context.Context, token string) (first time.Time, err error) {
	url := fmt.Sprintf("https://%s/v1/namespaces/%s/queues/%s/direct%s", s.manager.direct, s.ns, chatName, streamPath)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"say": "something"}`))
	if err != nil {
		return first, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.trusted, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return first, err
	}
	defer func() { _ = response.Body.Close() }()
	var said []string
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if word, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if len(said) == 0 {
				first = time.Now().UTC()
			}
			said = append(said, word)
		}
	}
	if response.StatusCode != http.StatusOK || len(said) != words {
		return first, fmt.Errorf("a direct request got %s and %q: %w", response.Status, said, lines.Err())
	}
	return first, lines.Err()
}

func (s *story) reservations(ctx context.Context) ([]batchv1alpha1.DirectReservation, error) {
	list := &batchv1alpha1.DirectReservationList{}
	err := s.client.List(ctx, list, client.InNamespace(s.ns))
	return slices.DeleteFunc(list.Items, func(d batchv1alpha1.DirectReservation) bool { return d.Spec.Queue != chatName }), err
}

// chatOrder checks the server's log: the run at work, the people, the other runs, and never two at once.
func (s *story) chatOrder(ctx context.Context, heard []time.Time) error {
	for n := range pages {
		err := s.await(ctx, "every page is Completed", func(ctx context.Context) (string, error) {
			r, err := s.run(ctx, fmt.Sprintf("page-%d", n+1))
			return not(r, batchv1alpha1.JobRunCompleted), err
		})
		if err != nil {
			return err
		}
	}
	log, err := s.server.log.entries()
	if err != nil {
		return err
	}
	order, err := s.oneAtATime(log.chat())
	if err != nil {
		return err
	}
	if want := []string{"page-1", "direct", "direct", "page-2", "page-3"}; !slices.Equal(order, want) {
		return fmt.Errorf("the server has seen %v; expected %v", order, want)
	}
	if err := errors.Join(s.streamed(log.chat(), heard), s.released(ctx)); err != nil {
		return err
	}
	s.say.claim("the server has seen %s", strings.Join(order, ", "))
	s.say.claim("both had the first word before the last one was sent; their reservations are Released, and carry the user's name")
	return nil
}

// oneAtATime returns who was at work, in order, and an error if two were at once.
func (s *story) oneAtATime(chat entries) (order []string, err error) {
	for i, e := range chat {
		switch {
		case e.Event == received && e.Direct != "":
			order = append(order, "direct")
		case e.Event == received:
			order = append(order, strings.TrimPrefix(e.Run, s.ns+"/"))
		case i == 0 || chat[i-1].Run != e.Run || chat[i-1].Direct != e.Direct:
			return nil, fmt.Errorf("two were at work at once: %+v", chat)
		}
	}
	return order, nil
}

// released expects the reservations of the people to be given back, in the name of the user.
func (s *story) released(ctx context.Context) error {
	return s.await(ctx, "the reservations are given back", func(ctx context.Context) (string, error) {
		found, err := s.reservations(ctx)
		for _, d := range found {
			if d.Status.Phase != batchv1alpha1.ReservationReleased || !strings.HasSuffix(d.Spec.HolderIdentity, ":"+chatUser) {
				return fmt.Sprintf("reservation %s of %q is %s", d.Name, d.Spec.HolderIdentity, d.Status.Phase), err
			}
		}
		return "", err
	})
}

// streamed expects the first word of each answer to have arrived before the server had sent all of it.
func (s *story) streamed(chat entries, heard []time.Time) error {
	ends := chat.where(func(e entry) bool { return e.Event == answered && e.Direct != "" })
	slices.SortFunc(heard, time.Time.Compare)
	for i, e := range ends {
		if !heard[i].Before(e.Time) {
			return fmt.Errorf("the first word of answer %d came at %s, and all of it was sent by %s", i+1, heard[i], e.Time)
		}
	}
	return nil
}
