// The links between all pairs of nodes of a platform file, as SimGrid routes: a line for each pair.
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char **argv) {
  simgrid::s4u::Engine engine(&argc, argv);
  engine.load_platform(argv[1]);
  const int nodes = static_cast<int>(engine.get_host_count());
  for (int pair = 0; pair < nodes * nodes; pair++) {
    const int source = pair / nodes, target = pair % nodes;
    std::vector<simgrid::s4u::Link *> links;
    double latency = 0;
    if (source != target)
      engine.host_by_name("node" + std::to_string(source))
          ->route_to(engine.host_by_name("node" + std::to_string(target)), links, &latency);
    std::printf("%d %d", source, target);
    for (const auto *link : links)
      std::printf(" %s", link->get_cname());
    std::printf("\n");
  }
}
