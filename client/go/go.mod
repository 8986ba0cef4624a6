module refd

go 1.19
