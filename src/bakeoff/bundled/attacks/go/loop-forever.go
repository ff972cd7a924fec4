func onCall() {
	for {
	}
}
