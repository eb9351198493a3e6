#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tests/fake_cuda/dnn.h"

// What lies behind the descriptors of cuDNN's graph API.
namespace dgc::fake_cuda {

struct GraphObject;

struct GraphAttribute {
  cudnnBackendAttributeType_t type{};
  // One of these, as the type says. Enumerators are numbers too.
  std::vector<int64_t> numbers{};
  std::vector<float> floats{};
  std::vector<void*> pointers{};
  std::vector<std::shared_ptr<const GraphObject>> objects{};
};

struct GraphObject {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, GraphAttribute> attributes{};

  // The attribute. Refuses the call where it has not been set.
  const GraphAttribute& at(cudnnBackendAttributeName_t) const;
  int64_t number(cudnnBackendAttributeName_t name) const { return at(name).numbers.at(0); }
  const GraphObject& object(cudnnBackendAttributeName_t name) const { return *at(name).objects.at(0); }
};

// A graph is a convolution, and perhaps the sum with its bias (cudnn_convolution.cpp). These refuse what is wrong with
// them.
void check_convolution(const GraphObject& operation);
void check_graph(const GraphObject& graph);

struct Engine {
  int64_t index;
  std::vector<int64_t> notes;  // cudnnBackendNumericalNote_t
};
// The engines that cuDNN's rules list for a graph, the first being the fastest. What does not work, what gives other
// bits each time, what rounds more and what takes too much memory come before what will do. Refuses where there is
// none.
std::vector<Engine> engines_of(const GraphObject& graph, cudnnBackendHeurMode_t mode);
// Refuses an engine that turns out not to work.
int64_t workspace_of(const GraphObject& graph, int64_t engine);
void execute(cudnnHandle_t handle, const GraphObject& graph, int64_t engine, const GraphObject& pointers);

}  // namespace dgc::fake_cuda
