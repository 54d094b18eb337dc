//! Cycles of a directed graph: strongly connected components by Tarjan's algorithm ("Depth-first
//! search and linear graph algorithms", 1972), in time linear in the arrows, and a shortest cycle.

use std::collections::VecDeque;

/// The successors of each node.
pub type Graph = Vec<Vec<usize>>;

/// Returns strongly connected components of more than one node, each sorted, by their first nodes.
pub fn components(graph: &Graph) -> Vec<Vec<usize>> {
    let mut search = Search {
        graph,
        order: vec![None; graph.len()],
        open: Vec::new(),
        is_open: vec![false; graph.len()],
        visited: 0,
        found: Vec::new(),
    };
    for node in 0..graph.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.found.sort();
    search.found
}

/// A depth-first search. `open` are the visited nodes that are not yet in a component.
struct Search<'a> {
    graph: &'a Graph,
    /// The time at which each node was visited.
    order: Vec<Option<usize>>,
    open: Vec<usize>,
    is_open: Vec<bool>,
    visited: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Visits the nodes reachable from `node`. Returns the first open one among them, by its order.
    fn visit(&mut self, node: usize) -> usize {
        let order = self.visited;
        self.visited += 1;
        self.order[node] = Some(order);
        self.is_open[node] = true;
        let height = self.open.len();
        self.open.push(node);
        let mut first = order;
        for &next in &self.graph[node] {
            match self.order[next] {
                None => first = first.min(self.visit(next)),
                Some(order) if self.is_open[next] => first = first.min(order),
                Some(_) => {}
            }
        }
        if first == order {
            let mut component = self.open.split_off(height);
            for &member in &component {
                self.is_open[member] = false;
            }
            if component.len() > 1 {
                component.sort_unstable();
                self.found.push(component);
            }
        }
        first
    }
}

/// Returns a shortest cycle through the nodes of a component, from its first node in `component`.
pub fn shortest_cycle(graph: &Graph, component: &[usize]) -> Vec<usize> {
    let cycles = component
        .iter()
        .filter_map(|&start| cycle_from(graph, start));
    cycles.min_by_key(Vec::len).unwrap_or_default()
}

/// Returns a shortest cycle through `start`, by breadth-first search until an arrow leads back.
fn cycle_from(graph: &Graph, start: usize) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; graph.len()];
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for &next in &graph[node] {
            if next == start {
                let back = |&at: &usize| before[at].filter(|_| at != start);
                let mut cycle: Vec<usize> = std::iter::successors(Some(node), back).collect();
                cycle.reverse();
                return Some(cycle);
            }
            if before[next].is_none() {
                before[next] = Some(node);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, arrows: &[(usize, usize)]) -> Graph {
        let mut graph = vec![Vec::new(); nodes];
        for &(from, to) in arrows {
            graph[from].push(to);
        }
        graph
    }

    #[test]
    fn each_component_is_found_once() {
        let arrows = [
            (0, 1),
            (1, 0),
            (1, 2),
            (2, 3),
            (3, 4),
            (4, 2),
            (4, 5),
            (0, 5),
        ];
        assert_eq!(components(&graph(6, &arrows)), [vec![0, 1], vec![2, 3, 4]]);
    }

    #[test]
    fn a_graph_without_cycles_has_no_components() {
        let arrows = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)];
        assert_eq!(components(&graph(5, &arrows)), [[0; 0]; 0]);
    }

    #[test]
    fn the_shortest_of_two_cycles_is_given() {
        let graph = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 2)]);
        let all = components(&graph);
        assert_eq!(all, [[0, 1, 2, 3, 4]]);
        assert_eq!(shortest_cycle(&graph, &all[0]), [2, 3, 4]);
    }
}
