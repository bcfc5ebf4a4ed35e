// A repository of its own, whose program is quick to build for any platform.
module reprise.dev/reprise/hack/image/testdata/repository

go 1.26.0
