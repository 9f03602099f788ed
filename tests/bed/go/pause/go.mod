module pretrain.dev/bed/pause

go 1.24.0
