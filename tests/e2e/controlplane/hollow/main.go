// Command hollow is a node without machines: the kubelet of this release, as kubemark runs it,
// on a fake runtime whose containers end as the annotation `sim/plan` of their pod says.
//
// Kubemark's own program has containers run for ever and drops the kubelet's Events. Here they end
// after `run` seconds with `exit`, fail `restarts` times before that, and take `grace` seconds to
// end with `termExit` when they are stopped; `failFirst`, `byOrdinal` and `byIndex` are as in
// plan.py, but counted by this node alone.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	fakeremote "k8s.io/cri-client/pkg/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

const (
	callTimeout = 15 * time.Second
	lookEvery   = 20 * time.Millisecond
	killed      = 137
)

type plan struct {
	Run       *float64        `json:"run"`
	Exit      *int32          `json:"exit"`
	Restarts  uint32          `json:"restarts"`
	FailFirst int             `json:"failFirst"`
	Grace     *float64        `json:"grace"`
	TermExit  *int32          `json:"termExit"`
	ByOrdinal map[string]plan `json:"byOrdinal"`
	ByIndex   map[string]plan `json:"byIndex"`
}

func (p *plan) override(by plan) {
	if by.Run != nil {
		p.Run = by.Run
	}
	if by.Exit != nil {
		p.Exit = by.Exit
	}
	if by.FailFirst != 0 {
		p.FailFirst = by.FailFirst
	}
	if by.Grace != nil {
		p.Grace = by.Grace
	}
	if by.TermExit != nil {
		p.TermExit = by.TermExit
	}
}

// runtime is the fake runtime with containers that end.
type runtime struct {
	internalapi.RuntimeService
	fake     *fakeremote.RemoteRuntime
	plans    map[string]plan // by sandbox
	ordinals map[string]int  // by Job
	attempts map[string]int  // by Job and index
}

// planOf must be called with the fake's lock held.
func (r *runtime) planOf(sandbox string) plan {
	if known, ok := r.plans[sandbox]; ok {
		return known
	}
	var made plan
	of := r.fake.RuntimeService.Sandboxes[sandbox]
	if of == nil {
		return made
	}
	if err := json.Unmarshal([]byte(of.Annotations["sim/plan"]), &made); err != nil {
		made = plan{}
	}
	job := of.Labels["controller-uid"]
	index, indexed := of.Annotations["batch.kubernetes.io/job-completion-index"]
	if by, ok := made.ByOrdinal[strconv.Itoa(r.ordinals[job])]; ok {
		made.override(by)
	}
	if by, ok := made.ByIndex[index]; ok && indexed {
		made.override(by)
	}
	if first := r.attempts[job+"/"+index]; made.FailFirst > 0 {
		code := int32(0)
		if first < made.FailFirst {
			if code = 1; made.Exit != nil {
				code = *made.Exit
			}
		}
		made.Exit = &code
	}
	r.ordinals[job]++
	r.attempts[job+"/"+index]++
	r.plans[sandbox] = made
	return made
}

// end has containers end whose time has come.
func (r *runtime) end() {
	fake := r.fake.RuntimeService
	fake.Lock()
	defer fake.Unlock()
	now := time.Now()
	for _, c := range fake.Containers {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		does := r.planOf(c.SandboxID)
		if does.Run == nil {
			continue
		}
		lasts := *does.Run / float64(does.Restarts+1)
		if now.Before(time.Unix(0, c.StartedAt).Add(seconds(lasts))) {
			continue
		}
		code := int32(0)
		if does.Exit != nil {
			code = *does.Exit
		}
		if does.Restarts > 0 && code == 0 && c.Metadata.Attempt < does.Restarts {
			code = 1
		}
		ended(c.Id, r, code)
	}
}

// ended must be called with the fake's lock held.
func ended(id string, r *runtime, code int32) {
	c := r.fake.RuntimeService.Containers[id]
	if c == nil || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.State = runtimeapi.ContainerState_CONTAINER_EXITED
	c.FinishedAt = time.Now().UnixNano()
	c.ExitCode = code
	if c.Reason = "Completed"; code != 0 {
		c.Reason = "Error"
	}
}

// StopContainer ends a container as a runtime does: when it is done with what it does at the end, or
// killed when that takes longer than it may.
func (r *runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	fake := r.fake.RuntimeService
	fake.Lock()
	wait, code := 0.3, int32(killed)
	if c := fake.Containers[id]; c != nil {
		does := r.planOf(c.SandboxID)
		if does.Grace != nil {
			wait = *does.Grace
		}
		if does.TermExit != nil {
			code = *does.TermExit
		}
	}
	fake.Unlock()
	if wait > float64(timeout) {
		wait, code = float64(timeout), killed
	}
	time.Sleep(seconds(wait))
	fake.Lock()
	defer fake.Unlock()
	ended(id, r, code)
	return nil
}

func seconds(count float64) time.Duration {
	return time.Duration(count * float64(time.Second))
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path to the kubeconfig")
	name := flag.String("name", "hollow", "the node's name")
	maxPods := flag.Int("max-pods", 110, "pods that it runs at most")
	lease := flag.Int("lease-seconds", 8, "how long its Lease lasts")
	flag.Parse()
	ctx := context.Background()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatalf("%v", err)
	}
	config.UserAgent = "hollow-kubelet"
	config.QPS, config.Burst = 50, 100 // as a kubelet has them
	client := clientset.NewForConfigOrDie(config)
	beats := *config
	beats.Timeout, beats.QPS = seconds(float64(*lease)), -1
	heartbeat := clientset.NewForConfigOrDie(&beats)

	endpoint, err := fakeremote.GenerateEndpoint()
	if err != nil {
		klog.Fatalf("%v", err)
	}
	fake := fakeremote.NewFakeRemoteRuntime()
	if err := fake.Start(endpoint); err != nil {
		klog.Fatalf("%v", err)
	}
	service, err := remote.NewRemoteRuntimeService(ctx, endpoint, callTimeout, noop.NewTracerProvider(), false)
	if err != nil {
		klog.Fatalf("%v", err)
	}
	planned := &runtime{
		RuntimeService: service, fake: fake,
		plans: map[string]plan{}, ordinals: map[string]int{}, attempts: map[string]int{},
	}
	go func() {
		for range time.Tick(lookEvery) {
			planned.end()
		}
	}()

	flags, settings := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: *name, MaxPods: *maxPods, NodeLabels: map[string]string{},
	})
	settings.EnableServer = false
	settings.Address = "127.0.0.1"
	settings.NodeLeaseDurationSeconds = int32(*lease)
	settings.NodeStatusUpdateFrequency.Duration = 2 * time.Second
	hollow := kubemark.NewHollowKubelet(
		flags, settings, client, heartbeat, &cadvisortest.Fake{NodeName: *name},
		fake.ImageService, planned, cm.NewStubContainerManager(),
	)
	// With a real recorder the kubelet watches the kernel's log for killed processes.
	if messages, err := os.Open("/dev/kmsg"); err == nil {
		_ = messages.Close()
		broadcaster := record.NewBroadcaster()
		broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: client.CoreV1().Events("")})
		source := v1.EventSource{Component: "kubelet", Host: *name}
		hollow.KubeletDeps.Recorder = broadcaster.NewRecorder(legacyscheme.Scheme, source)
	}
	hollow.Run(ctx)
}
