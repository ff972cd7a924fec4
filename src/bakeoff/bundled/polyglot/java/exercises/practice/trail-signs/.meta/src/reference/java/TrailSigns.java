import java.util.ArrayList;
import java.util.List;

class TrailSigns {
    static List<String> signs(String walk) {
        List<String> found = new ArrayList<>();
        int start = 0;
        for (int at = 1; at <= walk.length(); at++) {
            if (at == walk.length() || walk.charAt(at) != walk.charAt(start)) {
                found.add((at - start) + walk.substring(start, start + 1));
                start = at;
            }
        }
        return found;
    }

    static int distance(String walk) {
        int x = 0;
        int y = 0;
        for (char step : walk.toCharArray()) {
            x += step == 'E' ? 1 : step == 'W' ? -1 : 0;
            y += step == 'N' ? 1 : step == 'S' ? -1 : 0;
        }
        return Math.abs(x) + Math.abs(y);
    }

    static boolean isLoop(String walk) {
        return distance(walk) == 0;
    }
}
