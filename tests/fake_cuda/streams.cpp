// Streams and events. A stream knows what its next work must wait for; events hand that on to other streams.
#include <algorithm>

#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {
namespace {

uint64_t streams_made = 0;

void make_stream(cudaStream_t* stream, unsigned flags, int priority) {
  if (flags != cudaStreamNonBlocking) refuse(cudaErrorInvalidValue, "the fake has no default stream to wait for");
  *stream = new CUstream_st;
  (*stream)->number = ++streams_made;
  (*stream)->device = current_device();
  (*stream)->priority = priority;
  machine().streams.insert(*stream);
}

void make_event(cudaEvent_t* event, bool timed) {
  *event = new CUevent_st;
  (*event)->timed = timed;
  machine().events.insert(*event);
}

void join(Tail& tail, const Tail& more) {
  for (const auto& node : more) {
    if (std::ranges::find(tail, node) == tail.end()) tail.push_back(node);
  }
}

void wait_for(cudaStream_t stream, const CUevent_st& event) {
  Machine& m = machine();
  if (event.capture == nullptr) {
    if (stream->capture != nullptr && event.recorded) {
      m.invalidate(*stream->capture);
      refuse(cudaErrorStreamCaptureIsolation, "captured work cannot wait for work that is not captured");
    }
    std::erase_if(stream->tail, [](const auto& node) { return node->finished != 0; });
    join(stream->tail, event.tail);
    return;
  }
  if (event.capture->ended) refuse(cudaErrorCapturedEvent, "the event was recorded in a capture that has ended");
  if (stream->capture == nullptr) {
    stream->capture = event.capture;
    stream->capture->streams.insert(stream);
    stream->before_capture = std::exchange(stream->tail, {});
  } else if (stream->capture != event.capture) {
    m.invalidate(*stream->capture);
    m.invalidate(*event.capture);
    refuse(cudaErrorStreamCaptureMerge, "two captures cannot become one");
  }
  join(stream->tail, event.tail);
}

// Reads of an event's state. CUDA refuses them for events of captures.
void require_readable(cudaEvent_t event) {
  require_handle(machine().events, event, "the event");
  if (event->capture != nullptr) refuse(cudaErrorCapturedEvent, "the event was last recorded in a capture");
}

uint64_t time_of(cudaEvent_t event) {
  uint64_t last = 0;
  for (const auto& node : event->tail) last = std::max(last, node->finished);
  return last;
}

}  // namespace
}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return runtime_call("cudaStreamCreateWithFlags", WhileCapturing::allowed, [&] { make_stream(stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return runtime_call("cudaStreamCreateWithPriority", WhileCapturing::allowed,
                      [&] { make_stream(stream, flags, priority); });
}

// Work that is queued is still done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return ending_call("cudaStreamDestroy", [&] {
    Machine& m = machine();
    require_handle(m.streams, stream, "the stream");
    if (stream->capture != nullptr) {
      const auto capture = stream->capture;
      m.invalidate(*capture);
      if (capture->origin == stream) leave(*capture);
      capture->streams.erase(stream);
    }
    m.streams.erase(stream);
    delete stream;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return runtime_call("cudaStreamSynchronize", WhileCapturing::allowed, [&] {
    Machine& m = machine();
    require_handle(m.streams, stream, "the stream");
    if (stream->capture != nullptr) {
      m.invalidate(*stream->capture);
      refuse(cudaErrorStreamCaptureUnsupported, "a stream that is captured cannot be waited for");
    }
    m.finish(stream->tail);
    stream->tail.clear();
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return runtime_call("cudaStreamWaitEvent", WhileCapturing::allowed, [&] {
    require_handle(machine().streams, stream, "the stream");
    require_handle(machine().events, event, "the event");
    wait_for(stream, *event);
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return runtime_call("cudaEventCreate", WhileCapturing::allowed, [&] { make_event(event, true); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return runtime_call("cudaEventCreateWithFlags", WhileCapturing::allowed,
                      [&] { make_event(event, (flags & cudaEventDisableTiming) == 0); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return ending_call("cudaEventDestroy", [&] {
    require_handle(machine().events, event, "the event");
    machine().events.erase(event);
    delete event;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return runtime_call("cudaEventRecord", WhileCapturing::allowed, [&] {
    require_handle(machine().streams, stream, "the stream");
    require_handle(machine().events, event, "the event");
    event->recorded = true;
    event->tail = stream->tail;
    event->capture = stream->capture;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return runtime_call("cudaEventQuery", WhileCapturing::refused, [&] {
    require_readable(event);
    Machine& m = machine();
    if (Machine::finished(event->tail)) return;
    m.run_some(m.draw(4));  // time passes, so that a loop of queries ends
    refuse(cudaErrorNotReady, "not ready");
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return runtime_call("cudaEventSynchronize", WhileCapturing::refused, [&] {
    require_readable(event);
    machine().finish(event->tail);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return runtime_call("cudaEventElapsedTime", WhileCapturing::allowed, [&] {
    for (const cudaEvent_t event : {start, stop}) {
      require_readable(event);
      if (!event->timed || !event->recorded) {
        refuse(cudaErrorInvalidResourceHandle, "the event has no time: it was never recorded, or made without");
      }
      if (!Machine::finished(event->tail)) refuse(cudaErrorNotReady, "not ready");
    }
    *milliseconds = static_cast<float>(time_of(stop)) - static_cast<float>(time_of(start));
  });
}
