package parkingfee

import "testing"

func TestFee(t *testing.T) {
	for _, tc := range feeCases {
		t.Run(tc.description, func(t *testing.T) {
			got, err := Fee(tc.minutes)
			switch {
			case tc.expectError:
				if err == nil {
					t.Fatalf("Fee(%d) = %d, want an error", tc.minutes, got)
				}
			case err != nil:
				t.Fatalf("Fee(%d) returned the error %v", tc.minutes, err)
			case got != tc.expected:
				t.Fatalf("Fee(%d) = %d, want %d", tc.minutes, got, tc.expected)
			}
		})
	}
}

func TestReceiptOfAnHour(t *testing.T) {
	if got := Receipt(65); got != "1h05m: 3.60" {
		t.Errorf("Receipt(65) = %q", got)
	}
}

func TestReceiptOfAFreeStay(t *testing.T) {
	want := "0h07m: 0.00"
	if got := Receipt(7); got != want {
		t.Errorf("Receipt(7) = %q, want %q", got, want)
	}
}
