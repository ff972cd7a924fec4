module parkingfee

go 1.18
