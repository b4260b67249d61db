// A noisy server that knows nothing of wireguardrun; noisy_test.go says what it
// does. It is run from its source: java Server.java

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Server {
    static final Pattern REQUEST = Pattern.compile(".*\"id\":(\\d+),\"method\":\"(\\w+)\"}");

    public static void main(String[] args) throws Exception {
        System.out.println("<start>");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.print("<exit>")));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            serve(line);
        }
    }

    static void serve(String request) throws Exception {
        Matcher m = REQUEST.matcher(request);
        if (!m.matches()) {
            throw new IllegalArgumentException(request);
        }
        String kind = m.group(2);
        String answer = String.format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"%s\"}", m.group(1), kind);
        switch (kind) {
            case "log_messages":
                System.out.println("recv " + request);
                System.out.println("send " + answer);
                break;
            case "log_sent":
                System.out.println(answer);
                System.out.println("sent " + answer);
                return;
            case "log_object":
                System.out.println("{\"level\":\"info\",\"message\":" + answer + "}");
                break;
            case "before":
                System.out.println("<before>");
                break;
            case "same_line":
                System.out.print("<same_line>");
                break;
            case "after":
                System.out.println(answer);
                System.out.println("<after>");
                return;
            case "after_same_line":
                System.out.println(answer + " <after_same_line>");
                return;
            case "native":
                past("<native>\n");
                break;
            case "native_unfinished":
                past("<native_unfinished>");
                break;
            case "child":
                child("echo '<child>'");
                break;
            case "child_unfinished":
                child("printf '<child_unfinished>'");
                break;
            case "threads":
                threads();
                break;
            case "progress":
                for (int n : new int[] {10, 50, 100}) {
                    System.out.print("\r<progress> " + n + "%");
                }
                break;
            case "escape":
                System.out.print("\u001b[1m<escape>\u001b[0m");
                break;
            case "brace":
                System.out.println("{ <brace>");
                break;
            case "own":
                System.out.println("{\"jsonrpc\":\"2.0\",\"method\":\"own\"}");
                break;
            default:
                throw new IllegalArgumentException(kind);
        }
        // println writes the text and the line feed one after the other.
        System.out.println(answer);
    }

    /** Writes to descriptor 1 past System.out, as native code does. */
    static void past(String text) throws IOException {
        // Not closed: that would close the descriptor.
        new FileOutputStream(FileDescriptor.out).write(text.getBytes(StandardCharsets.UTF_8));
    }

    static void child(String script) throws Exception {
        int status = new ProcessBuilder("sh", "-c", script).inheritIO().start().waitFor();
        if (status != 0) {
            throw new IllegalStateException("the child ended with " + status);
        }
    }

    static void threads() throws InterruptedException {
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 9; n++) {
                    System.out.println("<threads>");
                }
            });
            threads[i].start();
        }
        for (Thread t : threads) {
            t.join();
        }
    }
}
