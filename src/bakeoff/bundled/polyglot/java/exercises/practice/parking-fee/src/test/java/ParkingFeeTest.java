import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

public class ParkingFeeTest {
    @Test
    public void nothingAtAll() {
        assertThat(ParkingFee.fee(0)).isEqualTo(0);
    }

    @Disabled("Remove to run test")
    @Test
    public void theLastFreeMinute() {
        assertThat(ParkingFee.fee(10)).isEqualTo(0);
    }

    @Disabled("Remove to run test")
    @Test
    public void theFirstMinuteThatCosts() {
        assertThat(ParkingFee.fee(11)).isEqualTo(120);
    }

    @Disabled("Remove to run test")
    @Test
    public void oneMinuteIntoTheSecondHalfHour() {
        assertEquals(240, ParkingFee.fee(31));
    }

    @Disabled("Remove to run test")
    @Test
    public void theMostForADay() {
        int expected = 1500;
        assertThat(ParkingFee.fee(900)).isEqualTo(expected);
    }

    @Disabled("Remove to run test")
    @Test
    public void aDayAndAnHour() {
        assertThat(ParkingFee.fee(1500)).isEqualTo(1740);
    }

    @Disabled("Remove to run test")
    @Test
    public void beforeItBegan() {
        assertThatExceptionOfType(IllegalArgumentException.class).isThrownBy(() -> ParkingFee.fee(-1));
    }

    @Disabled("Remove to run test")
    @Test
    public void receiptOfAnHour() {
        assertThat(ParkingFee.receipt(65)).isEqualTo("1h05m: 3.60");
    }

    @Disabled("Remove to run test")
    @Test
    public void receiptOfAFreeStay() {
        assertEquals("0h07m: 0.00", ParkingFee.receipt(7));
    }
}
