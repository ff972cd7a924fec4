module trailsigns

go 1.18
