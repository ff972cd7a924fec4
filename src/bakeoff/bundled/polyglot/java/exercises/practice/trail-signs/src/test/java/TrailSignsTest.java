import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

public class TrailSignsTest {
    @Test
    public void signsOfAStraightWalk() {
        assertThat(TrailSigns.signs("NNN")).containsExactly("3N");
    }

    @Disabled("Remove to run test")
    @Test
    public void signsOfTurns() {
        assertThat(TrailSigns.signs("NNESSS")).isEqualTo(List.of("2N", "1E", "3S"));
    }

    @Disabled("Remove to run test")
    @Test
    public void signsOfNoWalk() {
        assertThat(TrailSigns.signs("")).isEmpty();
    }

    @Disabled("Remove to run test")
    @Test
    public void distanceIgnoresDetours() {
        assertThat(TrailSigns.distance("NESW")).isEqualTo(0);
    }

    @Disabled("Remove to run test")
    @Test
    public void distanceAroundACorner() {
        assertThat(TrailSigns.distance("NNNEE")).isEqualTo(5);
    }

    @Disabled("Remove to run test")
    @Test
    public void distanceToTheWest() {
        assertThat(TrailSigns.distance("WWWS")).isEqualTo(4);
    }

    @Disabled("Remove to run test")
    @Test
    public void loops() {
        assertThat(TrailSigns.isLoop("NEESWW")).isTrue();
    }

    @Disabled("Remove to run test")
    @Test
    public void noLoop() {
        assertThat(TrailSigns.isLoop("NEES")).isFalse();
    }
}
