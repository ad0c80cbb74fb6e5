// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Collections, streams, strings, garbage and exceptions, until it is stopped. */
public final class Work {
    private static final class Node {
        final int value;
        Node left;
        Node right;

        Node(int value) {
            this.value = value;
        }

        void add(int other) {
            if (other < value) {
                if (left == null) left = new Node(other);
                else left.add(other);
            } else if (right == null) {
                right = new Node(other);
            } else {
                right.add(other);
            }
        }

        long sum() {
            return value + (left == null ? 0 : left.sum()) + (right == null ? 0 : right.sum());
        }
    }

    private static long trees(int seed) {
        Node root = new Node(500);
        for (int i = 0; i < 1500; i++) root.add((int) ((seed * 7919L + i * 104729L) % 1009));
        return root.sum();
    }

    private static long texts(int seed) {
        Map<String, List<Integer>> table = new HashMap<>();
        for (int i = 0; i < 2000; i++) {
            table.computeIfAbsent("key " + i * seed % 97, key -> new ArrayList<>()).add(i);
        }
        String text = table.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue().size())
            .sorted().collect(Collectors.joining(";"));
        return text.replaceAll("key (\\d+)", "$1").length() + IntStream.range(0, 500).parallel().sum();
    }

    private static int exceptions(int seed) {
        try {
            return Integer.parseInt("x" + seed);
        } catch (NumberFormatException error) {
            return error.getMessage().length();
        }
    }

    public static void main(String[] args) {
        long total = 0;
        for (int round = 1; total != -1; round++) {
            total += trees(round) + texts(round) + exceptions(round);
        }
    }
}
