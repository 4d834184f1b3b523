"builtin.module"() <{sym_name = "jit_fourier"}> ({
  "func.func"() <{function_type = (tensor<4x12xf64>) -> (tensor<4x12xcomplex<f64>>, tensor<4x12xcomplex<f64>>, tensor<4x7xcomplex<f64>>, tensor<4x12xf64>, tensor<4x12xcomplex<f64>>, tensor<4x12xf64>, tensor<4x7xcomplex<f64>>, tensor<4x9xcomplex<f64>>, tensor<23xf64>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg15: tensor<4x12xf64>):
    %25 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %26 = "func.call"(%arg15) <{callee = @fft}> : (tensor<4x12xf64>) -> tensor<4x12xcomplex<f64>>
    %27 = "func.call"(%26) <{callee = @fft_0}> : (tensor<4x12xcomplex<f64>>) -> tensor<4x12xcomplex<f64>>
    %28 = "func.call"(%arg15) <{callee = @fft_1}> : (tensor<4x12xf64>) -> tensor<4x7xcomplex<f64>>
    %29 = "stablehlo.slice"(%26) <{limit_indices = array<i64: 4, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xcomplex<f64>>) -> tensor<4x7xcomplex<f64>>
    %30 = "func.call"(%29) <{callee = @fft_2}> : (tensor<4x7xcomplex<f64>>) -> tensor<4x12xf64>
    %31 = "func.call"(%arg15) <{callee = @fft_3}> : (tensor<4x12xf64>) -> tensor<4x12xcomplex<f64>>
    %32 = "func.call"(%arg15) <{callee = @_roll_static}> : (tensor<4x12xf64>) -> tensor<4x12xf64>
    %33 = "func.call"(%arg15) <{callee = @fft_4}> : (tensor<4x12xf64>) -> tensor<4x7xcomplex<f64>>
    %34 = "stablehlo.slice"(%arg15) <{limit_indices = array<i64: 4, 9>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<4x9xf64>
    %35 = "func.call"(%34, %25) <{callee = @_pad}> : (tensor<4x9xf64>, tensor<i64>) -> tensor<4x9xf64>
    %36 = "func.call"(%35) <{callee = @fft_5}> : (tensor<4x9xf64>) -> tensor<4x9xcomplex<f64>>
    %37 = "stablehlo.slice"(%arg15) <{limit_indices = array<i64: 1, 12>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<1x12xf64>
    %38 = "stablehlo.reshape"(%37) : (tensor<1x12xf64>) -> tensor<12xf64>
    %39 = "stablehlo.slice"(%arg15) <{limit_indices = array<i64: 2, 12>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<1x12xf64>
    %40 = "stablehlo.reshape"(%39) : (tensor<1x12xf64>) -> tensor<12xf64>
    %41 = "func.call"(%38, %40) <{callee = @convolve}> : (tensor<12xf64>, tensor<12xf64>) -> tensor<23xf64>
    "func.return"(%26, %27, %28, %30, %31, %32, %33, %36, %41) : (tensor<4x12xcomplex<f64>>, tensor<4x12xcomplex<f64>>, tensor<4x7xcomplex<f64>>, tensor<4x12xf64>, tensor<4x12xcomplex<f64>>, tensor<4x12xf64>, tensor<4x7xcomplex<f64>>, tensor<4x9xcomplex<f64>>, tensor<23xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x12xf64>) -> tensor<4x12xcomplex<f64>>, sym_name = "fft", sym_visibility = "private"}> ({
  ^bb0(%arg14: tensor<4x12xf64>):
    %23 = "stablehlo.convert"(%arg14) : (tensor<4x12xf64>) -> tensor<4x12xcomplex<f64>>
    %24 = "stablehlo.fft"(%23) <{fft_length = array<i64: 12>, fft_type = #stablehlo<fft_type FFT>}> : (tensor<4x12xcomplex<f64>>) -> tensor<4x12xcomplex<f64>>
    "func.return"(%24) : (tensor<4x12xcomplex<f64>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x12xcomplex<f64>>) -> tensor<4x12xcomplex<f64>>, sym_name = "fft_0", sym_visibility = "private"}> ({
  ^bb0(%arg13: tensor<4x12xcomplex<f64>>):
    %22 = "stablehlo.fft"(%arg13) <{fft_length = array<i64: 12>, fft_type = #stablehlo<fft_type IFFT>}> : (tensor<4x12xcomplex<f64>>) -> tensor<4x12xcomplex<f64>>
    "func.return"(%22) : (tensor<4x12xcomplex<f64>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x12xf64>) -> tensor<4x7xcomplex<f64>>, sym_name = "fft_1", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<4x12xf64>):
    %21 = "stablehlo.fft"(%arg12) <{fft_length = array<i64: 12>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<4x12xf64>) -> tensor<4x7xcomplex<f64>>
    "func.return"(%21) : (tensor<4x7xcomplex<f64>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x7xcomplex<f64>>) -> tensor<4x12xf64>, sym_name = "fft_2", sym_visibility = "private"}> ({
  ^bb0(%arg11: tensor<4x7xcomplex<f64>>):
    %20 = "stablehlo.fft"(%arg11) <{fft_length = array<i64: 12>, fft_type = #stablehlo<fft_type IRFFT>}> : (tensor<4x7xcomplex<f64>>) -> tensor<4x12xf64>
    "func.return"(%20) : (tensor<4x12xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x12xf64>) -> tensor<4x12xcomplex<f64>>, sym_name = "fft_3", sym_visibility = "private"}> ({
  ^bb0(%arg10: tensor<4x12xf64>):
    %18 = "stablehlo.convert"(%arg10) : (tensor<4x12xf64>) -> tensor<4x12xcomplex<f64>>
    %19 = "stablehlo.fft"(%18) <{fft_length = array<i64: 4, 12>, fft_type = #stablehlo<fft_type FFT>}> : (tensor<4x12xcomplex<f64>>) -> tensor<4x12xcomplex<f64>>
    "func.return"(%19) : (tensor<4x12xcomplex<f64>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x12xf64>) -> tensor<4x12xf64>, sym_name = "_roll_static", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<4x12xf64>):
    %12 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 4, 12>, start_indices = array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<2x12xf64>
    %13 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 2, 12>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<2x12xf64>
    %14 = "stablehlo.concatenate"(%12, %13) <{dimension = 0 : i64}> : (tensor<2x12xf64>, tensor<2x12xf64>) -> tensor<4x12xf64>
    %15 = "stablehlo.slice"(%14) <{limit_indices = array<i64: 4, 12>, start_indices = array<i64: 0, 6>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<4x6xf64>
    %16 = "stablehlo.slice"(%14) <{limit_indices = array<i64: 4, 6>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x12xf64>) -> tensor<4x6xf64>
    %17 = "stablehlo.concatenate"(%15, %16) <{dimension = 1 : i64}> : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x12xf64>
    "func.return"(%17) : (tensor<4x12xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x12xf64>) -> tensor<4x7xcomplex<f64>>, sym_name = "fft_4", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<4x12xf64>):
    %11 = "stablehlo.fft"(%arg8) <{fft_length = array<i64: 4, 12>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<4x12xf64>) -> tensor<4x7xcomplex<f64>>
    "func.return"(%11) : (tensor<4x7xcomplex<f64>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x9xf64>, tensor<i64>) -> tensor<4x9xf64>, sym_name = "_pad", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<4x9xf64>, %arg7: tensor<i64>):
    %9 = "stablehlo.convert"(%arg7) : (tensor<i64>) -> tensor<f64>
    %10 = "stablehlo.pad"(%arg6, %9) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    "func.return"(%10) : (tensor<4x9xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x9xf64>) -> tensor<4x9xcomplex<f64>>, sym_name = "fft_5", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<4x9xf64>):
    %7 = "stablehlo.convert"(%arg5) : (tensor<4x9xf64>) -> tensor<4x9xcomplex<f64>>
    %8 = "stablehlo.fft"(%7) <{fft_length = array<i64: 9>, fft_type = #stablehlo<fft_type FFT>}> : (tensor<4x9xcomplex<f64>>) -> tensor<4x9xcomplex<f64>>
    "func.return"(%8) : (tensor<4x9xcomplex<f64>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<12xf64>, tensor<12xf64>) -> tensor<23xf64>, sym_name = "convolve", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<12xf64>, %arg4: tensor<12xf64>):
    %6 = "func.call"(%arg3, %arg4) <{callee = @_conv}> : (tensor<12xf64>, tensor<12xf64>) -> tensor<23xf64>
    "func.return"(%6) : (tensor<23xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<12xf64>, tensor<12xf64>) -> tensor<23xf64>, sym_name = "_conv", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<12xf64>, %arg2: tensor<12xf64>):
    %1 = "func.call"(%arg2) <{callee = @_flip}> : (tensor<12xf64>) -> tensor<12xf64>
    %2 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 2>}> : (tensor<12xf64>) -> tensor<1x1x12xf64>
    %3 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 2>}> : (tensor<12xf64>) -> tensor<1x1x12xf64>
    %4 = "stablehlo.convolution"(%2, %3) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 1 : i64, padding = dense<11> : tensor<1x2xi64>}> : (tensor<1x1x12xf64>, tensor<1x1x12xf64>) -> tensor<1x1x23xf64>
    %5 = "stablehlo.reshape"(%4) : (tensor<1x1x23xf64>) -> tensor<23xf64>
    "func.return"(%5) : (tensor<23xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<12xf64>) -> tensor<12xf64>, sym_name = "_flip", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<12xf64>):
    %0 = "stablehlo.reverse"(%arg0) <{dimensions = array<i64: 0>}> : (tensor<12xf64>) -> tensor<12xf64>
    "func.return"(%0) : (tensor<12xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
