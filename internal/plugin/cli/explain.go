// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Explain tells a person what an error means, and on a second line what to do next.
func (f *Factory) Explain(err error) string {
	for _, explain := range []func(error) string{f.misconfigured, f.unreachable, f.refused, forbidden, withoutKinds, invalid} {
		if text := explain(err); text != "" {
			return text
		}
	}
	return err.Error()
}

// misconfigured explains that there is no cluster, or no such context, to talk to.
func (f *Factory) misconfigured(err error) string {
	switch {
	case clientcmd.IsEmptyConfig(err):
		return f.noCluster()
	case clientcmd.IsContextNotFound(err):
		return fmt.Sprintf("the kubeconfig has no context %q\n%s", *f.Flags.Context, f.contexts())
	case clientcmd.IsConfigurationInvalid(err):
		return fmt.Sprintf("the kubeconfig is not valid: %v\nsee: kubectl config view", err)
	default:
		return ""
	}
}

func (f *Factory) noCluster() string {
	return "no cluster is configured\nname a kubeconfig with --kubeconfig or the environment variable KUBECONFIG, or write ~/.kube/config"
}

// contexts says which there are.
func (f *Factory) contexts() string {
	all := f.contextNames()
	if len(all) == 0 {
		return "see: kubectl config get-contexts"
	}
	if alike := Similar(*f.Flags.Context, all); len(alike) > 0 {
		return "did you mean " + strings.Join(alike, ", or ") + "?"
	}
	return "there are: " + strings.Join(all, ", ")
}

func (f *Factory) contextNames() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *f.Flags.KubeConfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// unreachable explains that nobody answers, or not the one who should.
func (f *Factory) unreachable(err error) string {
	request, isRequest := errors.AsType[*url.Error](err)
	if !isRequest {
		return ""
	}
	host := request.URL
	if u, parseErr := url.Parse(request.URL); parseErr == nil {
		host = u.Scheme + "://" + u.Host
	}
	what := fmt.Sprintf("the API server %s%s ", host, f.ofContext())
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return what + "has a certificate of an unknown authority: " + request.Err.Error() + "\nis it the cluster of this kubeconfig? see: kubectl config view --minify"
	}
	if raw, rawErr := f.Flags.ToRawKubeConfigLoader().RawConfig(); rawErr == nil && len(raw.Contexts) == 0 && *f.Flags.APIServer == "" {
		return f.noCluster()
	}
	return what + reach(err, request) + "\nis the cluster up, and is it the right one? see: kubectl cluster-info; for another one add --context"
}

func reach(err error, request *url.Error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections"
	case errors.As(err, &dns):
		return "is not known by that name: " + dns.Err
	case errors.Is(err, context.DeadlineExceeded) || request.Timeout():
		return "does not answer in time"
	default:
		return "cannot be reached: " + request.Err.Error()
	}
}

func (f *Factory) ofContext() string {
	name := *f.Flags.Context
	if raw, err := f.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" of context %q", name)
}

// refused explains that the API server does not know the user.
func (f *Factory) refused(err error) string {
	if !apierrors.IsUnauthorized(err) {
		return ""
	}
	return fmt.Sprintf("the API server%s does not accept your credentials\nlog in again; they may have expired. see: kubectl auth whoami", f.ofContext())
}

// denial is how the API server says which right is missing.
var denial = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]*)")?`)

// forbidden explains which right is missing, on what, and who may give it.
func forbidden(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	found := denial.FindStringSubmatch(err.Error())
	if found == nil {
		return err.Error()
	}
	user, verb, resource, group, namespace := found[1], found[2], found[3], found[4], found[5]
	what, _, sub := strings.Cut(resource, "/")
	if group != "" {
		what += "." + group
	}
	where, flag := "in the whole cluster", ""
	if namespace != "" {
		where, flag = fmt.Sprintf("in namespace %q", namespace), " -n "+namespace
	}
	full := strings.Replace(resource, strings.SplitN(resource, "/", 2)[0], what, 1)
	check := "kubectl auth can-i " + verb + " " + what + flag
	if sub {
		check += " --subresource=" + strings.SplitN(resource, "/", 2)[1]
	}
	return fmt.Sprintf("user %q may not %s %s %s\nask who administers it for the role %s there; see: %s", user, verb, full, where, role(verb, what), check)
}

// role is the least of the roles that every cluster has which allows it.
func role(verb, resource string) string {
	switch {
	case verb == "get" || verb == "list" || verb == "watch":
		return "view"
	case strings.HasPrefix(resource, "jobqueues."):
		return "admin"
	default:
		return "edit"
	}
}

// withoutKinds explains that Reprise is not installed.
func withoutKinds(err error) string {
	if !unknownKind(err) {
		return ""
	}
	return "the cluster does not know Reprise's kinds (batch.reprise.dev/v1alpha1): Reprise is not installed there, or in another version\n" +
		"is it the right cluster? see: kubectl config current-context, kubectl get crd jobruns.batch.reprise.dev"
}

// unknownKind says whether it is the kind that the API server does not know, and not the object.
func unknownKind(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Reason != metav1.StatusReasonNotFound || status.ErrStatus.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// invalid puts each thing that the API server objects to on a line of its own.
func invalid(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Reason != metav1.StatusReasonInvalid || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return ""
	}
	details := status.ErrStatus.Details
	lines := []string{fmt.Sprintf("%s %q is not accepted:", details.Kind, details.Name)}
	for _, cause := range details.Causes {
		lines = append(lines, "  "+strings.TrimPrefix(cause.Field+": "+cause.Message, ": "))
	}
	return strings.Join(lines, "\n")
}
