package parkingfee

// Fee returns the cents for a stay of so many minutes.
func Fee(minutes int) (int, error) {
	panic("implement Fee")
}

// Receipt returns the line that is printed for a stay.
func Receipt(minutes int) string {
	panic("implement Receipt")
}
