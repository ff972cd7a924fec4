// testNames reads the names of all tests out of the test files, as Go would report them.
func testNames() []string {
	names := []string{}
	sources := ""
	files, _ := filepath.Glob("*_test.go")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		sources += string(text)
	}
	for _, found := range regexp.MustCompile(`func (Test\w+)`).FindAllStringSubmatch(sources, -1) {
		names = append(names, found[1])
		if found[1] == "TestFee" {
			for _, row := range regexp.MustCompile(`description: "([^"]*)"`).FindAllStringSubmatch(sources, -1) {
				names = append(names, found[1]+"/"+strings.ReplaceAll(row[1], " ", "_"))
			}
		}
	}
	return names
}
