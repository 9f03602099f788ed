"""What tests share: real servers, sample data and process control."""
